"""Where a coupon comes from, as far as counters ask: said once, for all who count. The checker has it written apart."""

from __future__ import annotations

COUNTED = "source NOT IN ('transfer', 'lottery', 'manual')"
"""Coupons that count against their owner's limits: not what another user gave him, what he won, nor what an operator
gave him."""

GRANTED = "source IN ('batch', 'code', 'lottery', 'manual')"
"""Coupons whose unit never was a claim's: those that ``granted_quantity`` counts."""
