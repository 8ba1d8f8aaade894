"""Lotteries: prizes drawn at odds, each while it lasts, and settled into draws and coupons (DESIGN 11)."""
