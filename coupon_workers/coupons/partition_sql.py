"""The order of the partitions, for statements that insert many coupons."""

from __future__ import annotations

# As PostgreSQL cuts "coupon" in eight by a hash: one partition after the other, the indexes of each stay in the
# processor's cache, as they do for COPY. Were it cut in another way, this would only be slower.
PARTITION = "hashtextextended(user_id, 8816678312871386365) & 7"
