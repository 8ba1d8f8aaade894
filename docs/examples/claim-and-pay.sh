#!/bin/sh
# A coupon's life with HTTPie (https://httpie.io): made, claimed, locked, paid, returned.
# API is the front's address, KEY a key with the scopes admin, storefront and orders, RUN a word of this run.
set -eu
export HTTPIE_CONFIG_DIR="${TMPDIR:-/tmp}"
call() { http --ignore-stdin --check-status --body -A bearer -a "$KEY" "$@"; }
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

TEMPLATE=$(call POST "$API/v1/templates" "Idempotency-Key:template-$RUN" \
  name="20 off from 100" type=amount_off currency=CNY amount:=2000 threshold:=10000 total_quantity:=10 \
  claim_start=2026-01-01T00:00:00+08:00 claim_end=2035-12-31T00:00:00+08:00 \
  validity:='{"mode": "relative", "days": 7}' timezone=Asia/Shanghai | field template_id)
call POST "$API/v1/templates/$TEMPLATE/publish" "Idempotency-Key:publish-$RUN" | field status

CLAIM=$(call POST "$API/v1/claims" template_id="$TEMPLATE" user_id="u-$RUN" request_id="form-$RUN" | field claim_id)
call GET "$API/v1/claims/$CLAIM" wait==10 | field status
call GET "$API/v1/users/u-$RUN/coupons" status==unused | field next_cursor

LINES='[{"line_id": "1", "product_id": "p9", "unit_price": 10000, "quantity": 3}]'
call POST "$API/v1/quotes" user_id="u-$RUN" currency=CNY lines:="$LINES" | field discount
call POST "$API/v1/orders/O-$RUN/lock" user_id="u-$RUN" currency=CNY lines:="$LINES" \
  coupon_nos:="[\"$CLAIM\"]" | field status
call POST "$API/v1/orders/O-$RUN/redeem" user_id="u-$RUN" payment_no="P-$RUN" | field payable
call POST "$API/v1/orders/O-$RUN/refunds" user_id="u-$RUN" refund_no="R-$RUN" full:=true | field refund_amount
