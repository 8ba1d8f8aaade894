"""A Unix socket lies beside its server's data where the path allows it, else in a short private folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coupon_workers.embedded.socket_folder import LONGEST_PATH, remove_socket_folder, socket_folder
from coupon_workers.errors import EmbeddedServerError


def test_a_short_path_is_used_as_it_is(tmp_path: Path) -> None:
    """The socket then lies where its data are."""
    beside = Path("/srv/coupon")

    assert beside == socket_folder(beside, "a.sock")


@pytest.mark.parametrize("name", ["long " * 30, "comma,here"])
def test_a_path_no_client_can_use_gets_a_private_folder(tmp_path: Path, name: str) -> None:
    """Too long for the kernel, or with a comma, which ends a host for libpq; the same folder every time."""
    beside = tmp_path / name

    folder = socket_folder(beside, "a.sock")

    try:
        assert folder == socket_folder(beside, "a.sock")
        assert len(os.fsencode(folder / "a.sock")) <= LONGEST_PATH
        assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        remove_socket_folder(folder, beside)
    assert not folder.exists()


def test_a_folder_open_to_others_is_refused(tmp_path: Path) -> None:
    """Whoever could enter it could talk to the server."""
    beside = tmp_path / ("long " * 30)
    folder = socket_folder(beside, "a.sock")
    folder.chmod(0o777)

    try:
        with pytest.raises(EmbeddedServerError, match="not a private folder"):
            socket_folder(beside, "a.sock")
    finally:
        folder.rmdir()
