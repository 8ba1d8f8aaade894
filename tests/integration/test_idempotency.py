"""One effect and one stored answer for a request that is sent again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count

from sqlalchemy import Engine, text

from coupon_workers.access.idempotency import (
    Fence,
    InProgress,
    Mismatch,
    StoredAnswer,
    abandon,
    begin,
    finish,
)

IDS = count(1)
PRINT = b"\x01" * 32
ANSWER = StoredAnswer(201, '{"a":1}', "application/json")


def _begin(engine: Engine, *, key_id: str = "caller", key: str = "k", fingerprint: bytes = PRINT) -> object:
    return begin(engine, key_id=key_id, idempotency_key=key, fingerprint=fingerprint, subject_id=next(IDS))


def _fence(engine: Engine) -> Fence:
    fence = _begin(engine)
    assert isinstance(fence, Fence)
    return fence


def _pass_the_deadline(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE idempotency SET deadline = now() - interval '1 second'"))


def test_the_second_of_two_requests_gets_the_stored_answer(engine: Engine) -> None:
    """Status, body and type as they were."""
    assert finish(engine, _fence(engine), ANSWER)

    assert ANSWER == _begin(engine)


def test_of_many_at_once_exactly_one_runs(engine: Engine) -> None:
    """The others are told that it runs, and until when at most."""
    with ThreadPoolExecutor(7) as threads:
        beginnings = list(threads.map(lambda _: _begin(engine), range(14)))

    assert 1 == sum(isinstance(beginning, Fence) for beginning in beginnings)
    waits = [beginning for beginning in beginnings if isinstance(beginning, InProgress)]
    assert 13 == len(waits)
    assert all(1 <= wait.retry_after_s <= 60 for wait in waits)


def test_another_request_under_the_same_key_is_a_mismatch(engine: Engine) -> None:
    """While the first runs, and after it has been answered."""
    fence = _fence(engine)

    assert Mismatch() == _begin(engine, fingerprint=b"\x02" * 32)

    finish(engine, fence, ANSWER)

    assert Mismatch() == _begin(engine, fingerprint=b"\x02" * 32)


def test_a_key_belongs_to_its_caller(engine: Engine) -> None:
    """Another caller's answer is never shown."""
    finish(engine, _fence(engine), ANSWER)

    assert isinstance(_begin(engine, key_id="another"), Fence)


def test_a_request_that_failed_may_run_again(engine: Engine) -> None:
    """Nothing of it is kept."""
    abandon(engine, _fence(engine))

    assert isinstance(_begin(engine), Fence)


def test_a_request_whose_process_died_is_taken_over_once(engine: Engine) -> None:
    """After the deadline, by one of those who ask."""
    _fence(engine)
    _pass_the_deadline(engine)

    with ThreadPoolExecutor(7) as threads:
        beginnings = list(threads.map(lambda _: _begin(engine), range(7)))

    assert 1 == sum(isinstance(beginning, Fence) for beginning in beginnings)


def test_a_late_answer_does_not_replace_that_of_the_one_who_took_over(engine: Engine) -> None:
    """The deadline is the fence: the first one's is no longer there."""
    late = _fence(engine)
    _pass_the_deadline(engine)
    taken_over = _fence(engine)

    assert not finish(engine, late, StoredAnswer(500, "late", "text/plain"))
    abandon(engine, late)
    assert finish(engine, taken_over, ANSWER)
    assert ANSWER == _begin(engine)


def test_another_request_does_not_take_over(engine: Engine) -> None:
    """A key that died running still belongs to its request."""
    _fence(engine)
    _pass_the_deadline(engine)

    assert Mismatch() == _begin(engine, fingerprint=b"\x02" * 32)
    assert isinstance(_begin(engine), Fence)
