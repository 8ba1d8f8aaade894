"""Orders: what coupons take off an order, how it falls on its lines, and how a coupon moves through its life."""
