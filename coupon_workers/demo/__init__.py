"""What ``coupon-workers demo`` shows: a sale, and with ``--full`` codes, random amounts, a lottery and an attack."""
