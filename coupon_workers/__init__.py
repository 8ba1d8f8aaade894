"""The core of Coupon Workers: rules, storage and task names. It knows no web framework and no scheduler."""
