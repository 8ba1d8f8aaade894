"""Reconciliation: what no single chain can see is compared, found, and repaired once (DESIGN 10)."""
