"""The settings of a command: the environment's, and where it names no server those of a running ``up``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coupon_workers.audit.operator import COMMAND_LINE
from coupon_workers.embedded.servers_file import running_settings
from coupon_workers.errors import CouponWorkersError
from coupon_workers.runtime.settings import PREFIX, Settings, read_settings
from coupon_workers.runtime.structured_log import configure_logs

DATABASE = "database_url"
STOCK = "redis_url"
BROKER = "broker_url"

OPERATOR = COMMAND_LINE.operator_id
"""Who did what was done here; any key may approve a batch that was made here."""


class NothingRuns(CouponWorkersError):  # noqa: N818 - it says what is the case
    """No server to talk to: none is named, and no ``up`` runs in the data folder."""


def cli_settings(*needed: str) -> Settings:
    """The settings in force, for a command that needs these addresses: by default all three.

    Logs go to standard error from then on, warnings and worse: a command's own words are its result. Raises
    ``SettingsError`` naming a bad variable, ``NothingRuns`` when a needed address is neither set nor found.
    """
    settings = settings_in_force()
    missing = [field for field in needed or (DATABASE, STOCK, BROKER) if getattr(settings, field) is None]
    if missing:
        names = ", ".join(f"{PREFIX}{field.upper()}" for field in missing)
        raise NothingRuns(f"{nothing_runs(settings.data_dir)}, or set {names}")
    level = "ERROR" if settings.log_level == "ERROR" else "WARNING"
    configure_logs(settings.model_copy(update={"log_level": level, "log_format": "console"}), for_good=False)
    return settings


def settings_in_force() -> Settings:
    """What the environment leaves open is read from the ``up`` that runs in ``COUPON_DATA_DIR``: its servers'
    addresses, and where its front listens.

    Raises ``SettingsError`` naming a bad variable.
    """
    given = read_settings()
    running = running_settings(given.data_dir) or {}
    found = _fields(running)
    open_ones = {
        name: value for name, value in found.items() if name not in given.model_fields_set or not getattr(given, name)
    }
    # Made anew instead of copied: the values are checked, and against one another.
    return Settings(**{**_given(given), **open_ones})


def nothing_runs(data_dir: Path) -> str:
    """What every command says that finds no running ``up``."""
    return (
        f"no `coupon-workers up` runs with the data folder {data_dir.resolve()}; "
        "start one, or name its folder with COUPON_DATA_DIR"
    )


def _fields(variables: Mapping[str, str]) -> dict[str, str]:
    names = {f"{PREFIX}{field.upper()}": field for field in Settings.model_fields}
    return {names[variable]: value for variable, value in variables.items() if variable in names}


def _given(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.model_fields_set}
