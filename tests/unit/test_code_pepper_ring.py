"""The keys of codes' hashes: a ring that turns, and says nothing of itself (DESIGN 11)."""

from __future__ import annotations

import pytest
from pydantic import SecretStr, ValidationError

from coupon_workers.codes.export_seal import BrokenSeal, ExportSeal
from coupon_workers.codes.pepper_ring import HASH_BYTES, Pepper, pepper_ring
from coupon_workers.errors import Conflict
from coupon_workers.runtime.settings import Settings

NEW, OLD = "new-pepper-of-2027", "old-pepper-of-2026"


def ring(secrets: str) -> Settings:
    """Settings with this ring."""
    return Settings(code_pepper=SecretStr(secrets))


def test_new_codes_are_under_the_newest_pepper_and_old_ones_are_found() -> None:
    """A pepper put in front of the others takes nothing from them."""
    before, after = pepper_ring(ring(OLD)), pepper_ring(ring(f"{NEW},{OLD}"))

    assert before.newest.hash_of("K7WX") in after.hashes_of("K7WX")
    assert after.newest.hash_of("K7WX") == after.hashes_of("K7WX")[0] != before.newest.hash_of("K7WX")
    assert before.newest.pepper_id == after.find(before.newest.pepper_id).pepper_id != after.newest.pepper_id


def test_a_pepper_that_left_the_ring_is_missed_by_its_name() -> None:
    """Nothing is hashed under another one instead."""
    gone = pepper_ring(ring(OLD)).newest.pepper_id

    with pytest.raises(Conflict) as refused:
        pepper_ring(ring(NEW)).find(gone)

    assert ("PEPPER_MISSING", gone) == (refused.value.code, refused.value.evidence["pepper"])


def test_a_pepper_is_in_no_text_of_its_own() -> None:
    """Not in a log, not in an error."""
    pepper = Pepper(NEW.encode())

    assert NEW not in f"{pepper!r} {pepper} {pepper.pepper_id} {ring(NEW)!r}"
    assert (HASH_BYTES, 8) == (len(pepper.hash_of("K7WX")), len(pepper.pepper_id))


@pytest.mark.parametrize("secrets", ["short", f"{NEW},", f"{NEW}, {OLD}", f"{NEW},{NEW}", ","])
def test_a_ring_that_cannot_work_refuses_to_start(secrets: str) -> None:
    """Too short, empty, with stray spaces, doubled."""
    with pytest.raises(ValidationError):
        ring(secrets)


def test_without_a_pepper_there_are_no_codes() -> None:
    """And whoever asks is told what is missing."""
    for settings in (Settings(), ring("")):
        with pytest.raises(Conflict, match="COUPON_CODE_PEPPER"):
            pepper_ring(settings)


def test_a_sealed_part_opens_as_itself_alone() -> None:
    """Not as another part, not of another batch, not when a bit has changed; the text is not in it."""
    pepper = Pepper(NEW.encode())
    sealed = ExportSeal(pepper, 7).close(1, b"K7WX\r\n")

    assert b"K7WX\r\n" == ExportSeal(pepper, 7).open(1, sealed)
    assert b"K7WX" not in sealed
    for seal, part, content in (
        (ExportSeal(pepper, 7), 2, sealed),
        (ExportSeal(pepper, 8), 1, sealed),
        (ExportSeal(pepper, 7), 1, sealed[:-1] + bytes((sealed[-1] ^ 1,))),
    ):
        with pytest.raises(BrokenSeal):
            seal.open(part, content)
