"""The settings of a command: the environment's, and where it names no server those of a running ``up``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coupon_workers.embedded.servers_file import running_settings
from coupon_workers.runtime.settings import PREFIX, Settings, read_settings


def cli_settings() -> Settings:
    """The settings in force. What the environment leaves open is read from the ``up`` that runs in
    ``COUPON_DATA_DIR``: its servers' addresses, and where its front listens.

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


def _fields(variables: Mapping[str, str]) -> dict[str, str]:
    names = {f"{PREFIX}{field.upper()}": field for field in Settings.model_fields}
    return {names[variable]: value for variable, value in variables.items() if variable in names}


def _given(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.model_fields_set}
