"""The table that the schedulers keep to. It stands in the core, which fronts may read: a new job is a row there."""

from coupon_workers.scheduling.job_table import TABLE

__all__ = ["TABLE"]
