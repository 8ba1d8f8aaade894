"""Redeem codes: drawn, kept as keyed hashes, handed out once, exchanged for a coupon each (DESIGN 11)."""
