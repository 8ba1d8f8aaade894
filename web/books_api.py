"""The books over HTTP (API.md, Back office): the ledger with its adjustments, and the daily close."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from coupon_workers.errors import InvalidInput
from coupon_workers.finance import daily_close
from coupon_workers.finance.adjustment import Adjustment, book_adjustment
from coupon_workers.finance.business_day import read_day
from coupon_workers.finance.close_csv import close_csv
from coupon_workers.finance.close_list import ClosedDay, read_closes
from coupon_workers.finance.close_reading import DayClose, read_close
from coupon_workers.finance.ledger_reading import LedgerAnswer, Position, read_ledger
from coupon_workers.finance.user_ledger import read_user_ledger
from coupon_workers.orders.order import UserId
from coupon_workers.orders.order_request import CouponNo, OrderNo
from coupon_workers.templates.field_type import MAX_EXACT, ExternalId
from web.auth import require
from web.batch_model import Identity
from web.context import principal, services
from web.idempotent import idempotent
from web.page import PageQuery, bad_cursor, page, read_cursor
from web.problem_code import refuses

api = APIBlueprint("books", __name__, abp_tags=[Tag(name="Books", description="The ledger, and the daily close")])

LONGEST_REASON = 500

_CSV = {"description": "a line a template and currency", "content": {"text/csv": {"schema": {"type": "string"}}}}


Reason = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=LONGEST_REASON)]


def _not_nothing(amount: int) -> int:
    if amount == 0:
        raise PydanticCustomError("amount", "must not be 0: nothing would be booked")
    return amount


class LedgerQuery(PageQuery):
    """Which bookings, and which page of them."""

    date: str | None = Field(None, description="only those of this business day, as 2026-11-11")
    template_id: Identity | None = Field(None, description="only those of this template")
    user_id: UserId | None = Field(None, description="only those of this user, of all days and templates")
    order_no: OrderNo | None = Field(None, description="of the user's only those of this order")

    def of_user(self) -> str | None:
        """Whose bookings are asked for. Raises ``InvalidInput`` for what does not go together."""
        if self.user_id is None and self.order_no is not None:
            raise InvalidInput([("order_no", "goes with user_id: two users may have orders of one number")])
        beside = {"date": self.date, "template_id": self.template_id}
        if self.user_id is not None and (named := [name for name, value in beside.items() if value is not None]):
            raise InvalidInput([(name, "does not go with user_id") for name in named])
        return self.user_id


class LedgerPage(BaseModel):
    """Bookings: the latest day first, in it by template, the newest first; a user's the newest first."""

    items: list[LedgerAnswer]
    next_cursor: str | None


class DayPage(BaseModel):
    """Closed days: the latest first."""

    items: list[ClosedDay]
    next_cursor: str | None


class DayPath(BaseModel):
    """The business day in the path."""

    date: str = Field(description="as 2026-11-11")


class ReopenBody(BaseModel):
    """Why the day is opened again."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason = Field(examples=["a refund of the 11th was booked late"])


class AdjustmentBody(BaseModel):
    """What is corrected of a coupon on an order, and why."""

    model_config = ConfigDict(extra="forbid")

    reference: ExternalId = Field(description="books once, for good", examples=["ticket-4711"])
    user_id: UserId
    order_no: OrderNo
    coupon_no: CouponNo
    amount: Annotated[int, Field(strict=True, ge=-MAX_EXACT, le=MAX_EXACT), AfterValidator(_not_nothing)] = Field(
        description="minor units of the template's currency: above zero more expense, below zero less",
        examples=[-500],
    )
    reason: Reason = Field(examples=["5.00 too much was taken off"])


@api.get("/v1/ledger", summary="Read the ledger", responses={200: LedgerPage})
@require("admin")
def get_ledger(query: LedgerQuery) -> Any:
    """Bookings of a day, of a template, of both or of all; or of a user, and of one of the user's orders: an order's
    number is its user's own.
    """
    before = ledger_position(query.cursor)
    if (user_id := query.of_user()) is not None:
        last = before[2] if before else None
        entries = read_user_ledger(services(), user_id, order_no=query.order_no, limit=query.limit + 1, before=last)
    else:
        entries = read_ledger(
            services(),
            limit=query.limit + 1,
            day=read_day(query.date) if query.date is not None else None,
            template_id=query.template_id,
            before=before,
        )
    return page(entries, query.limit, lambda entry: entry.model_dump(mode="json"), shown_position)


@api.post("/v1/ledger/adjustments", summary="Adjust the ledger", responses={200: LedgerAnswer})
@require("admin")
@refuses("COUPON_NOT_FOUND")
@idempotent
def post_adjustment(body: AdjustmentBody) -> Any:
    """A booking against the account `adjustment`, on the template's local day of now. The same `reference` again has
    the same answer, another adjustment under it is a 422. 404 `COUPON_NOT_FOUND`, also for another user's coupon.
    """
    asked = Adjustment(
        reference=body.reference,
        user_id=body.user_id,
        order_no=body.order_no,
        coupon_id=body.coupon_no,
        amount_minor=body.amount,
        reason=body.reason,
    )
    return _json(book_adjustment(services(), asked, principal().key_id))


@api.get("/v1/daily-closes", summary="List closed days", responses={200: DayPage})
@require("admin")
def list_closes(query: PageQuery) -> Any:
    """The latest day first, each as it was last closed, with what it cost in each currency."""
    position = read_cursor(query.cursor, str)
    found = read_closes(services(), limit=query.limit + 1, before=day_before(position))
    return page(found, query.limit, lambda day: day.model_dump(mode="json"), lambda day: [day.date])


@api.post("/v1/daily-closes/<date>", summary="Close a day", responses={200: DayClose})
@require("admin")
@refuses("DAY_NOT_OVER")
@idempotent
def post_close(path: DayPath) -> Any:
    """Freeze what each template's coupons did and cost on its local day. Closing again answers the same; a day that was
    opened again is closed with the next revision. 409 `DAY_NOT_OVER`, with `closable_at`.
    """
    return _json(daily_close.close_day(services(), read_day(path.date), principal().key_id))


@api.post("/v1/daily-closes/<date>/reopen", summary="Open a day again", responses={200: DayClose})
@require("admin")
@refuses("DAILY_CLOSE_NOT_FOUND", "DAY_NOT_CLOSED")
@idempotent
def post_reopen(path: DayPath, body: ReopenBody) -> Any:
    """What was closed is kept, with who opened it again, when and why. 409 `DAY_NOT_CLOSED`."""
    return _json(daily_close.reopen_day(services(), read_day(path.date), principal().key_id, body.reason))


@api.get("/v1/daily-closes/<date>", summary="A closed day", responses={200: DayClose})
@require("admin")
@refuses("DAILY_CLOSE_NOT_FOUND")
def get_close(path: DayPath) -> Any:
    """As it was last closed; `revisions` has every closing."""
    return _json(read_close(services(), read_day(path.date)))


@api.get("/v1/daily-closes/<date>.csv", summary="A closed day as a file", responses={200: _CSV})
@require("admin")
@refuses("DAILY_CLOSE_NOT_FOUND")
def get_close_file(path: DayPath) -> Response:
    """Amounts in minor units. Safe to be opened in a spreadsheet."""
    close = read_close(services(), read_day(path.date))
    answer = Response(close_csv(close), content_type="text/csv; charset=utf-8")
    answer.headers["Content-Disposition"] = f'attachment; filename="close-{close.date}-{close.revision}.csv"'
    return answer


def _json(answer: BaseModel) -> dict[str, Any]:
    return answer.model_dump(mode="json")


def day_before(position: list[Any] | None) -> date:
    """The day before which a list goes on. Raises ``InvalidInput`` for a cursor that is none."""
    try:
        return date.fromisoformat(position[0]) if position else date.max
    except ValueError:
        raise bad_cursor() from None


def shown_position(entry: LedgerAnswer) -> list[Any]:
    """Where a booking stands, as a cursor has it."""
    day, template_id, entry_id = entry.position
    return [day.isoformat(), template_id, entry_id]


def ledger_position(cursor: str | None) -> Position | None:
    """The booking before which a list goes on. Raises ``InvalidInput`` for a cursor that is none."""
    found = read_cursor(cursor, str, int, int)
    if found is None:
        return None
    try:
        return date.fromisoformat(found[0]), found[1], found[2]
    except ValueError:
        raise bad_cursor() from None
