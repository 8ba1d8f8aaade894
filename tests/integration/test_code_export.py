"""The plain texts of codes: handed out once, to the end, and gone then (DESIGN 11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coupon_workers.codes.code_batch_end import revoke_code_batch
from coupon_workers.codes.code_export import LEASE, fetch_codes
from coupon_workers.errors import Conflict, Gone, Overtaken
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.code_batch import CodeDesk, plan_codes
from tests.support.sale import assert_sound, open_sale


@pytest.fixture
def desk(services: Services) -> CodeDesk:
    """Twenty codes in parts of seven."""
    desk = plan_codes(open_sale(services, total_quantity=30), 20)
    desk.generate(chunk=7)
    return desk


def test_the_texts_are_handed_out_once(desk: CodeDesk) -> None:
    """The second one is told when and by whom they were fetched, and nothing of them is left."""
    download = fetch_codes(desk.services, desk.code_batch_id, "key-1")
    content = b"".join(download.pieces)

    with pytest.raises(Gone) as refused:
        fetch_codes(desk.services, desk.code_batch_id, "key-2")

    assert download.length == len(content)
    assert 21 == len(content.splitlines())
    assert ("CODES_FETCHED", "key-1") == (refused.value.code, refused.value.evidence["fetched_by"])
    assert [] == desk.sale.rows("SELECT part_no FROM code_export_part")
    assert_sound(desk.services)


def test_a_download_that_broke_off_may_be_begun_anew(desk: CodeDesk) -> None:
    """The client went away in its midst: nothing was deleted, and nobody has to wait."""
    pieces = fetch_codes(desk.services, desk.code_batch_id, "key-1").pieces
    next(pieces)
    next(pieces)

    pieces.close()  # type: ignore[attr-defined]

    assert 20 == len(desk.fetch())
    assert "fetched" == desk.books["export"]


def test_a_download_of_which_nothing_was_taken_may_be_begun_anew(desk: CodeDesk) -> None:
    """The client asked for the head alone, or went away before the first byte: nobody has to wait."""
    pieces = fetch_codes(desk.services, desk.code_batch_id, "key-1").pieces

    pieces.close()  # type: ignore[attr-defined]

    assert 20 == len(desk.fetch())
    assert "fetched" == desk.books["export"]


def test_two_downloads_at_once_are_one(desk: CodeDesk) -> None:
    """The second one is told that somebody has it; a front that died lets go after the lease."""
    pieces = fetch_codes(desk.services, desk.code_batch_id, "key-1").pieces
    next(pieces)

    with pytest.raises(Conflict) as refused:
        fetch_codes(desk.services, desk.code_batch_id, "key-2")

    assert "FETCH_IN_PROGRESS" == refused.value.code
    later = replace(desk.services, clock=lambda: utc_now() + LEASE)
    assert 21 == len(b"".join(fetch_codes(later, desk.code_batch_id, "key-2").pieces).splitlines())
    with pytest.raises(Overtaken):
        list(pieces)
    assert "key-2" == desk.books["fetched_by"]


def test_what_is_not_generated_whole_is_not_handed_out(services: Services) -> None:
    """It is told how far it is."""
    desk = plan_codes(open_sale(services, total_quantity=30), 20)

    with pytest.raises(Conflict) as refused:
        desk.fetch()

    assert ("NOT_READY", {"generated": 0, "quantity": 20}) == (refused.value.code, refused.value.evidence)


@pytest.mark.parametrize("begun", [False, True])
def test_the_texts_of_a_revoked_batch_are_gone(desk: CodeDesk, begun: bool) -> None:
    """Also for whoever is fetching them at that moment."""
    pieces = fetch_codes(desk.services, desk.code_batch_id, "key-1").pieces if begun else iter(())
    next(pieces, None)

    revoke_code_batch(desk.services, desk.code_batch_id, "key-2")

    with pytest.raises(Gone) as refused:
        desk.fetch()
    assert "CODES_DROPPED" == refused.value.code
    if begun:
        with pytest.raises(Overtaken):
            list(pieces)
    assert [] == desk.sale.rows("SELECT part_no FROM code_export_part")
    assert_sound(desk.services)
