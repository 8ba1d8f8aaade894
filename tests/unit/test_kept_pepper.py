"""The pepper of an installation is made once; one that cannot be read is no reason to make another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coupon_workers.embedded.kept_pepper import kept_pepper
from coupon_workers.errors import EmbeddedServerError

UNREADABLE: dict[str, Callable[[Path], object]] = {
    "a folder": lambda path: path.mkdir(),
    "no text": lambda path: path.write_bytes(b"\xff\xfe"),
}


def test_it_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    """Every start has the same."""
    made = kept_pepper(tmp_path)

    assert made == kept_pepper(tmp_path)
    assert 64 == len(made)
    assert ["code-pepper"] == [path.name for path in tmp_path.iterdir()]
    assert 0o600 == (tmp_path / "code-pepper").stat().st_mode & 0o777


def test_one_that_was_being_written_at_a_crash_is_thrown_away(tmp_path: Path) -> None:
    """Nothing hangs on it: what was not whole was never used."""
    (tmp_path / "code-pepper.unfinished").write_text("half of")

    made = kept_pepper(tmp_path)

    assert 64 == len(made)
    assert ["code-pepper"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize("what", UNREADABLE)
def test_one_that_cannot_be_read_is_named_and_left_as_it_is(tmp_path: Path, what: str) -> None:
    """Codes may hang on it."""
    UNREADABLE[what](tmp_path / "code-pepper")

    with pytest.raises(EmbeddedServerError, match=f"{tmp_path}/code-pepper"):
        kept_pepper(tmp_path)

    assert ["code-pepper"] == [path.name for path in tmp_path.iterdir()]
