"""Bringing a database to the newest schema, and back: Alembic, driven from code so that no file names an address."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, text

from coupon_workers.errors import ServerTooOld

_SCRIPTS = Path(__file__).parent / "migrations"

MIGRATION_LOCK = 0x636F7570
"""Advisory lock that lets one migration run at a time: two hosts may start together."""


OLDEST_SERVER = 18
"""Major version of PostgreSQL: statements use ``RETURNING old`` and ``crc32``, which came with it. On an older one the
schema would be made all the same, claims would be settled, and jobs would fail each time they run."""


def check_server(version: int) -> None:
    """``version`` as ``server_version_num`` tells it. Raises ``ServerTooOld``."""
    if version < OLDEST_SERVER * 10_000:
        raise ServerTooOld(
            f"PostgreSQL {OLDEST_SERVER} or later is needed, and the server has version {version // 10_000}"
        )


def _config(engine: Engine) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["engine"] = engine
    return config


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the database up to ``revision``; does nothing when it is there. Raises ``ServerTooOld``."""
    with engine.connect() as connection:
        check_server(int(connection.scalar(text("SHOW server_version_num")) or 0))
    command.upgrade(_config(engine), revision)


def downgrade(engine: Engine, revision: str = "base") -> None:
    """Take the database back to ``revision``; ``base`` leaves no table of ours."""
    command.downgrade(_config(engine), revision)


def current_revision(engine: Engine) -> str | None:
    """The revision the database is at, or None when it has never been migrated."""
    with engine.connect() as connection:
        if connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
            return None
        revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision
