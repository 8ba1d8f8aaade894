"""The installation a demo runs on: servers and processes of its own, whatever servers the environment names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr

from coupon_workers.embedded.kept_pepper import CODE_PEPPER
from coupon_workers.embedded.output import LogFolder
from coupon_workers.embedded.running_system import HTTP_PORT, RunningSystem
from coupon_workers.embedded.servers import BROKER_URL, DATABASE_URL, REDIS_URL
from coupon_workers.runtime.settings import Settings

HOST = "127.0.0.1"


@contextmanager
def demo_system(folder: Path, *, port: int = 0) -> Iterator[RunningSystem]:
    """A running one with data and logs in ``folder``; ``port`` 0 takes a free one. Raises ``EmbeddedServerError``."""
    # With a storefront to look at while it lasts.
    own_servers = {DATABASE_URL: "", REDIS_URL: "", BROKER_URL: "", "COUPON_SHOP": "true"}
    output = LogFolder(folder / "logs")
    with RunningSystem(folder, host=HOST, port=port, overrides=own_servers, output=output) as system:
        yield system


def demo_settings(system: RunningSystem) -> Settings:
    """The settings of whoever looks into its stores."""
    pepper = system.env.get(CODE_PEPPER)
    return Settings(
        database_url=SecretStr(system.env[DATABASE_URL]),
        redis_url=SecretStr(system.env[REDIS_URL]),
        broker_url=SecretStr(system.env[BROKER_URL]),
        code_pepper=SecretStr(pepper) if pepper else None,
        http_host=HOST,
        http_port=int(system.env[HTTP_PORT]),
        log_level="ERROR",
        log_format="console",
    )
