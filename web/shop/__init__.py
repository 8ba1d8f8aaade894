"""A storefront to click through: claim, exchange, pay, return. For demonstrations; ``COUPON_SHOP`` serves it."""
