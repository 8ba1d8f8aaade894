"""What a reader of the published description must know before the first call (API.md, Conventions)."""

API_DESCRIPTION = """\
Coupons that are claimed by many at once: templates, claims, wallets, and how the platform is doing.

**Keys and scopes.** Send `Authorization: Bearer <key>`. A key has one or more of the scopes `storefront` (claims,
wallets), `orders`, `admin` (templates, keys) and `ops` (queues, metrics); each operation names the ones that open it.
No key or a wrong one is 401, a key without the scope 403. `coupon-workers keys create` makes the first key.

**Ids are text.** They have 64 bits, more than the numbers of many JSON readers hold: keep them as strings of digits.

**Money** is an integer in minor units of its currency: `1000` with `CNY` is 10.00, with `JPY` it is 1,000.
Percentages are basis points: `1500` is 15 %.

**Instants** are RFC 3339 with an offset, and are answered in UTC. Intervals are half-open: the end is not part of them.

**Bodies** are JSON objects in UTF-8 of at most 1 MiB; where an operation says so also forms, with a file of at most
64 MiB. Unknown fields and members named twice are refused.

**Errors** are `application/problem+json` (RFC 9457). `code` is stable; `errors` names every field that is wrong, all at
once. 429 and 503 carry `Retry-After`, in seconds. Every answer carries `X-Request-Id`: yours, if you sent one.

**Idempotency.** A claim carries its own `request_id`: send the same one until you have an answer. Every other write
takes an `Idempotency-Key`; the same key and body get the stored answer again, with `Idempotency-Replayed: true`.

**Paging.** Lists take `limit` (1 to 200, 50 when it is left out) and `cursor`, and answer `items` and `next_cursor`;
give that as the next page's `cursor`. It is null on the last page.
"""
