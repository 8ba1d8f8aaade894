"""Queues, dead letters and jobs in the console."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import text

from tests.support.console_visitor import Visitor
from tests.support.dead_letters import bury
from tests.support.http_shop import Shop


@pytest.fixture
def watch(shop: Shop) -> Visitor:
    """Whoever is on duty."""
    return Visitor(shop, "ops")


def _actions(shop: Shop) -> list[str]:
    with shop.services.engine.connect() as connection:
        return list(connection.execute(text("SELECT action FROM audit_log WHERE action !~ 'key' ORDER BY 1")).scalars())


def test_queues_tell_what_waits(shop: Shop, watch: Visitor) -> None:
    """Dead letters in the broker, accepted claims in Redis."""
    bury(shop)
    template_id = shop.desk.open()
    shop.front.claimed(template_id, "ann")

    page = watch.page("/queues")

    assert f"/console/live/{template_id}" in page
    assert "Claims that wait: 1" in page
    assert '<a class="badge bad" href="/console/dead-letters">1</a>' in page


def test_a_dead_letter_is_sent_again_once(shop: Shop, watch: Visitor) -> None:
    """Its content is shown, what its failure said is not; the second time it is gone."""
    message_id = bury(shop, 7001, 3)
    page = watch.page("/dead-letters")
    assert all(part in page for part in (message_id, "settle_claims", "[7001, 3]", "Boom"))
    assert "u-1 exists" not in page

    watch.done(f"/dead-letters/{message_id}/replay")

    assert "No message was given up." in watch.page("/dead-letters")
    again = watch.post(f"/dead-letters/{message_id}/replay")
    assert (404, True) == (again.status_code, "This dead letter is gone" in again.text)
    assert ["dead_letter.replay"] == _actions(shop)


def test_a_dead_letter_is_thrown_away(shop: Shop, watch: Visitor) -> None:
    """With a row in the audit log."""
    message_id = bury(shop)

    watch.done(f"/dead-letters/{message_id}/discard")

    assert message_id not in watch.page("/dead-letters")
    assert ["dead_letter.discard"] == _actions(shop)


def test_a_job_is_run_once_by_a_form_that_is_sent_twice(shop: Shop, watch: Visitor) -> None:
    """An extra run, by the watch's key; a form that this session was not given runs nothing."""
    page = watch.page("/jobs")
    found = re.search(r'jobs/(\w+)/run.*?name="allotted" value="([^"]+)"', page, re.DOTALL)
    assert found is not None

    for _ in range(2):
        watch.done(f"/jobs/{found[1]}/run", allotted=found[2])

    assert watch.key.record.key_id in watch.page("/jobs")
    assert ["job.run"] == _actions(shop)
    assert 403 == watch.post(f"/jobs/{found[1]}/run", allotted="77.guessed").status_code
    assert 404 == watch.post("/jobs/nothing/run", allotted=found[2]).status_code
