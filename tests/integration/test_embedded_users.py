"""The servers run for root and for a plain user, wherever program and data lie."""

from __future__ import annotations

import os
import pwd
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from coupon_workers.embedded import postgres_binaries as binaries
from coupon_workers.embedded.postgres import EmbeddedPostgres
from coupon_workers.embedded.system_user import SystemUser, user_for

ROOT = Path(__file__).parents[2]
SCRIPT = """
import os, sys
from pathlib import Path
import psutil
from coupon_workers.embedded.servers import EmbeddedServers

with EmbeddedServers(Path(sys.argv[1]), durable=False) as servers:
    print({psutil.Process(pid).uids().real for pid in servers.pids().values()} == {os.getuid()})
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can try other users; all other tests run as we do")


@pytest.fixture
def nobody_folder() -> Iterator[Path]:
    """A folder of `nobody`, whom the folders of pytest are closed to."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    os.chown(folder, nobody().uid, nobody().gid)
    yield folder
    shutil.rmtree(folder)


def nobody() -> SystemUser:
    """A plain user every machine has."""
    entry = pwd.getpwnam("nobody")
    return SystemUser(entry.pw_uid, entry.pw_gid)


def run_as_nobody(prefix: list[str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run our interpreter with ``words``, as `nobody`, by way of ``prefix``."""
    environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), *site.getsitepackages()]), "PATH": os.defpath}
    return subprocess.run(
        [*prefix, sys.executable, *words], cwd="/", env=environment, capture_output=True, text=True, check=False
    )


def way_to_be_nobody() -> list[str]:
    """The words that change the user; where the interpreter is closed to him, with leave to read everything."""
    change = ["setpriv", f"--reuid={nobody().uid}", f"--regid={nobody().gid}", "--clear-groups"]
    reader = [*change, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    probe = "import coupon_workers.embedded.servers"
    for prefix in (change, reader):
        if shutil.which("setpriv") and run_as_nobody(prefix, "-c", probe).returncode == 0:
            return prefix
    pytest.skip("no way to run this interpreter and this checkout as `nobody`")


def test_a_plain_user_runs_them_himself(nobody_folder: Path) -> None:
    """No root, no other user: every server is his own process."""
    done = run_as_nobody(way_to_be_nobody(), "-c", SCRIPT, str(nobody_folder / "data"))

    assert (done.stdout, done.stderr) == ("True\n", "")


def test_root_runs_postgres_as_another_user_in_a_folder_closed_to_him(tmp_path: Path) -> None:
    """As in a fresh clone made with mkdtemp: the folders above stay closed, the data belong to the other user."""
    closed = tmp_path / "clone"
    closed.mkdir(mode=0o700)

    with EmbeddedPostgres(closed / "data" / "postgres", durable=False) as server:
        assert psutil.Process(server.pid).uids().real != 0
        assert server.data_dir.stat().st_uid != 0
    assert closed.stat().st_mode & 0o777 == 0o700
    assert closed.stat().st_uid == 0


def test_programs_closed_to_the_other_user_are_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The virtual environment lies below a folder of root's own: a second start finds the copy of the first."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    installed = binaries._installed()
    package = closed / "site-packages" / installed.parent.name
    package.mkdir(parents=True)
    (package / "pginstall").symlink_to(installed)
    (package.parent / binaries._LIBRARIES).symlink_to(installed.parents[1] / binaries._LIBRARIES)
    cache = Path(tempfile.mkdtemp(dir="/tmp"))
    cache.chmod(0o755)
    monkeypatch.setattr(binaries, "_installed", lambda: package / "pginstall")
    monkeypatch.setattr(binaries, "_cache_roots", lambda: [tmp_path / "unreachable", cache / "coupon-workers"])

    try:
        first = binaries.postgres_binaries(nobody())
        made = (first / "postgres").stat().st_ino
        with EmbeddedPostgres(tmp_path / "postgres", durable=False) as server:
            assert str(cache) in psutil.Process(server.pid).exe()

        assert first == binaries.postgres_binaries(nobody())
        assert made == (first / "postgres").stat().st_ino
        assert [first.parents[2]] == list((cache / "coupon-workers").iterdir())
    finally:
        shutil.rmtree(cache)


def test_of_two_starts_that_copy_at_once_the_slower_takes_the_others_copy(tmp_path: Path) -> None:
    """It is there when he has made his own, which goes."""
    folder = tmp_path / "cache" / "postgres"
    folder.parent.mkdir()

    for _ in range(2):
        binaries._copy(binaries._installed(), folder)

    assert [folder] == list(folder.parent.iterdir())
    assert (folder / binaries._PACKAGE / "pginstall" / "bin" / "postgres").is_file()


def test_a_copy_another_user_could_have_made_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may write into a temporary folder; only a folder of root's own is trusted."""
    installed = binaries._installed()
    foreign = tmp_path / "cache"
    foreign.mkdir()
    os.chown(foreign, nobody().uid, nobody().gid)

    assert binaries._copy_in(foreign, installed) is None


def test_root_respects_the_owner_of_existing_data(nobody_folder: Path) -> None:
    """Data a plain user made stay usable by him after root has run them."""
    data = nobody_folder / "postgres"
    data.mkdir()
    os.chown(data, nobody().uid, nobody().gid)

    assert nobody() == user_for(data)
