"""Coupon templates: the plan (what, how many, when) and its life."""
