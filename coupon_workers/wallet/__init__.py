"""A user's coupons, as the user sees them."""
