"""``GET /livez`` and ``GET /readyz``: for balancers and supervisors, open to all (API.md, Operations)."""

from __future__ import annotations

from typing import Any, Literal

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict

from web.auth import open_to_all
from web.context import web_of_app

api = APIBlueprint("health", __name__, abp_tags=[Tag(name="Operations")])


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"]


class PartState(BaseModel):
    """One part; members beside ``state`` say more about it."""

    model_config = ConfigDict(extra="allow")

    state: Literal["ok", "late", "down"]


class Readiness(BaseModel):
    """Every part and, in ``status``, whether all answer."""

    status: Literal["ok", "down"]
    parts: dict[str, PartState]


@api.get("/livez", responses={200: Alive})
@open_to_all
def live() -> dict[str, str]:
    """Whether this process answers. Depends on nothing else."""
    return {"status": "ok"}


@api.get("/readyz", responses={200: Readiness, 503: Readiness})
@open_to_all
def ready() -> Any:
    """Whether Redis, PostgreSQL and the broker answer; how old the oldest queued claim is; when the scheduler last ran.

    503 when a part is down. A late part (claims that wait, a scheduler that has not run) does not make it 503: claims
    are accepted all the same.
    """
    health = web_of_app().health.check()
    body = {
        "status": "ok" if health.is_ready else "down",
        "parts": {name: {"state": part.state, **part.detail} for name, part in health.parts.items()},
    }
    return (body, 200) if health.is_ready else (body, 503, {"Retry-After": "1"})
