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
    """Every part and, in ``status``, what their states come to: ``ok`` when none is down, ``degraded`` when claims are
    accepted all the same, ``down`` when they are not."""

    status: Literal["ok", "degraded", "down"]
    parts: dict[str, PartState]


@api.get("/livez", summary="Liveness", responses={200: Alive})
@open_to_all
def live() -> dict[str, str]:
    """Whether this process answers. Depends on nothing else."""
    return {"status": "ok"}


@api.get("/readyz", summary="Readiness", responses={200: Readiness, 503: Readiness})
@open_to_all
def ready() -> Any:
    """Whether Redis, PostgreSQL and the broker answer; how old the oldest queued claim is; when the scheduler last ran.

    503 when Redis is down. Without PostgreSQL or the broker it is 200 and ``degraded``, and a late part (claims that
    wait, a scheduler that has not run) leaves it ``ok``: claims are accepted all the same.
    """
    health = web_of_app().health.check()
    body = {
        "status": health.status,
        "parts": {name: {"state": part.state, **part.detail} for name, part in health.parts.items()},
    }
    return (body, 503, {"Retry-After": "1"}) if health.status == "down" else (body, 200)
