"""Reading changes nothing: no GET writes but the one that hands codes out, and no HEAD at all."""

from __future__ import annotations

import httpx
import pytest
from flask import Flask

from coupon_workers.codes.code_generation import run_generation
from coupon_workers.runtime.services import Services
from tests.support.api_recorder import Recorder
from tests.support.api_tour import Tour, worker_broker
from tests.support.http_shop import Shop
from tests.support.notify_receiver import Receiver
from tests.support.order_books import nothing_written
from tests.support.written_rows import tables_written, writes_of

HANDED_OUT = "GET /v1/code-batches/{code_batch_id}/codes.csv"


class _Watching(httpx.BaseTransport):
    def __init__(self, way: httpx.BaseTransport, recorder: WatchingRecorder) -> None:
        self._way, self._recorder = way, recorder

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Pass it on, and note what a GET has written."""
        with writes_of(self._recorder.shop.services.engine) as written:
            response = self._way.handle_request(request)
        if request.method == "GET":
            self._recorder.written.setdefault(self._recorder.exchanges[-1].operation, set()).update(written)
        return response


class WatchingRecorder(Recorder):
    """Keeps which tables each reading operation has written."""

    def __init__(self, shop: Shop) -> None:
        super().__init__()
        self.shop = shop
        self.written: dict[str, set[str]] = {}

    def over(self, app: Flask) -> httpx.BaseTransport:
        """A way to ``app`` that is watched."""
        return _Watching(super().over(app), self)


def test_no_operation_that_reads_writes(services: Services) -> None:
    """Every GET of the API, but the one that hands out codes once and says so."""
    shop = Shop(services, claim_rate=0, webhook_private=True)
    recorder = WatchingRecorder(shop)
    broker = worker_broker(shop)
    with Receiver().serving() as receiver:
        Tour(shop, recorder).walk(receiver, broker)
    broker.close()

    assert len(recorder.written) > 30
    assert [HANDED_OUT] == [operation for operation, tables in recorder.written.items() if tables]


def test_asking_about_codes_hands_none_out(services: Services) -> None:
    """A HEAD, which proxies send by themselves, is no fetch: it is answered 405, and nothing moves."""
    shop = Shop(services)
    body = {"template_id": shop.desk.open(total_quantity=10), "quantity": 3}
    batch = shop.desk.admin.ask("POST", "/v1/code-batches", body).ok(202)["code_batch_id"]
    run_generation(shop.services, int(batch))
    address = f"/v1/code-batches/{batch}/codes.csv"

    with nothing_written(services):
        asked = shop.desk.admin.ask("HEAD", address)

    assert (405, "GET, OPTIONS") == (asked.status, asked.headers["allow"])
    assert 4 == len(shop.desk.admin.ask("GET", address).body.splitlines())


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("WITH a AS (UPDATE coupon c SET x = 1) INSERT INTO  audit_log VALUES (1)", {"coupon", "audit_log"}),
        ("SELECT 1 FROM coupon FOR NO KEY UPDATE OF coupon", set()),
        ("SELECT 1 FROM coupon FOR UPDATE SKIP LOCKED", set()),
        ("delete from code_export_part", {"code_export_part"}),
        ("UPDATE api_key SET last_used_at = now()", set()),
    ],
)
def test_what_writes_is_known_by_its_words(statement: str, tables: set[str]) -> None:
    """Holding a row is no writing."""
    assert tables == tables_written(statement)
