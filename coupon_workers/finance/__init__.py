"""What coupons cost: the ledger, and the books made of it."""
