"""The life of a coupon apart from any order: the table of its moves, giving it away, its end."""
