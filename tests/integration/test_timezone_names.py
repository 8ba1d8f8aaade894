"""Time zones as PostgreSQL understands their names: as we do, or they are not taken (DESIGN 12)."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text

from coupon_workers.checking.time_zone import time_zone
from coupon_workers.errors import Conflict, InvalidInput
from coupon_workers.runtime.services import Services
from coupon_workers.templates import template_desk as desk
from coupon_workers.templates.field_type import PLACE_OF, known_timezones
from coupon_workers.templates.template import TemplateBody
from coupon_workers.templates.template_answer import TemplateAnswer
from coupon_workers.templates.template_change import patch_template

SEASONS = [datetime(2026, month, 15, tzinfo=UTC) for month in (1, 7)]


def test_no_name_is_an_abbreviation_to_postgresql_and_a_place_to_us(services: Services) -> None:
    """``AT TIME ZONE 'CET'`` is winter time all year: days of summer would begin an hour late in the books alone."""
    names = {name.upper(): name for name in known_timezones()}  # abbreviations are read in any case
    with services.engine.connect() as connection:
        abbreviations = connection.execute(
            text("SELECT abbrev, utc_offset FROM pg_timezone_abbrevs WHERE abbrev = ANY(:names)"),
            {"names": list(names)},
        ).all()

    apart = [
        names[abbreviation]
        for abbreviation, offset in abbreviations
        if any(offset != at.astimezone(ZoneInfo(names[abbreviation])).utcoffset() for at in SEASONS)
    ]
    assert abbreviations
    assert [] == apart


def test_every_name_is_one_to_postgresql(services: Services) -> None:
    """What it does not know it would refuse amid a settling."""
    with services.engine.connect() as connection:
        known = set(connection.scalars(text("SELECT name FROM pg_timezone_names")))

    assert set() == known_timezones() - known


def test_a_zone_that_is_not_taken_any_more_has_a_place_of_the_same_time() -> None:
    """By which a template of it goes on."""
    for name, place in PLACE_OF.items():
        assert place in known_timezones()
        assert [at.astimezone(ZoneInfo(name)).utcoffset() for at in SEASONS] == [
            at.astimezone(ZoneInfo(place)).utcoffset() for at in SEASONS
        ]


def stored_with_cet(services: Services, *, publish: bool) -> int:
    """A template of before such zones were refused."""
    template_id = int(desk.create_template(services, body()).template_id)
    if publish:
        desk.publish_template(services, template_id)
    with services.engine.begin() as connection:
        connection.execute(text("UPDATE coupon_template SET timezone = 'CET'"))
    return template_id


def body() -> TemplateBody:
    """A template whose claiming is open this year."""
    fields = {"name": "desk", "type": "cash", "currency": "EUR", "amount": 500, "total_quantity": 10}
    open_for = {"claim_start": "2026-01-01T00:00:00Z", "claim_end": "2027-01-01T00:00:00Z"}
    return TemplateBody.model_validate(fields | open_for | {"validity": {"mode": "relative", "days": 7}})


def test_a_draft_stored_with_such_a_zone_is_given_a_place(services: Services) -> None:
    """It is not published before."""
    template_id = stored_with_cet(services, publish=False)

    with pytest.raises(InvalidInput):
        desk.publish_template(services, template_id)
    patch_template(services, template_id, {"timezone": PLACE_OF["CET"]})

    assert "active" == desk.publish_template(services, template_id).status


def test_a_published_template_with_such_a_zone_is_run_and_cloned(services: Services) -> None:
    """Its days stay as they are in the books; its clone has days of the place, and takes over."""
    template_id = stored_with_cet(services, publish=True)

    changed = patch_template(services, template_id, {"name": "until the new one is there", "timezone": "CET"})
    with pytest.raises(Conflict) as refusal:
        patch_template(services, template_id, {"timezone": PLACE_OF["CET"]})
    clone = desk.clone_template(services, template_id)
    desk.take_offline(services, template_id)

    assert isinstance(changed, TemplateAnswer)
    assert ("until the new one is there", "CET") == (changed.name, changed.timezone)
    assert "NOT_PATCHABLE" == refusal.value.code
    assert ("draft", PLACE_OF["CET"]) == (clone.status, clone.timezone)
    assert "active" == desk.publish_template(services, int(clone.template_id)).status
    assert ["time_zone"] == [breach.invariant for breach in time_zone(services)]
