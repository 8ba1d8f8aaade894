"""The life of a template: its statuses, the actions that move it, and what the clock makes of it.

::

    draft ── publish ──▶ scheduled ┄ claim_start ┄▶ active ┄ claim_end ┄▶ ended
      │ ▲                  ▲ └────────────┬────────────┘
      │ │ hand_back        │              │ pause  ▲
      │ │                  │ approve      ▼        │ resume, to what the clock says
      ▼ │                  │            paused ────┘
    pending_approval ──────┘

    publish leads to pending_approval where two must agree; hand_back: rejected, or withdrawn
    offline: from scheduled, active, paused and ended; archive: from every status

scheduled, active and ended are one stored state seen at three times: whichever of the words is stored, the clock says
which is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from coupon_workers.errors import Conflict


class TemplateStatus(StrEnum):
    """Where a template is in its life."""

    DRAFT = "draft"
    PENDING_APPROVAL = "pending_approval"
    SCHEDULED = "scheduled"
    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"
    OFFLINE = "offline"
    ARCHIVED = "archived"


class TemplateAction(StrEnum):
    """What an operator may do to a template's status."""

    PUBLISH = "publish"
    APPROVE = "approve"
    HAND_BACK = "hand_back"
    PAUSE = "pause"
    RESUME = "resume"
    OFFLINE = "offline"
    ARCHIVE = "archive"


_S, _A = TemplateStatus, TemplateAction

CLOCKED = frozenset({_S.SCHEDULED, _S.ACTIVE, _S.ENDED})
"""The statuses between which the clock alone decides."""

NEVER_PUBLISHED = frozenset({_S.DRAFT, _S.PENDING_APPROVAL})

LEAVES: dict[TemplateAction, frozenset[TemplateStatus]] = {
    _A.PUBLISH: frozenset({_S.DRAFT}),
    _A.APPROVE: frozenset({_S.PENDING_APPROVAL}),
    _A.HAND_BACK: frozenset({_S.PENDING_APPROVAL}),
    _A.PAUSE: frozenset({_S.SCHEDULED, _S.ACTIVE}),
    _A.RESUME: frozenset({_S.PAUSED}),
    _A.OFFLINE: CLOCKED | {_S.PAUSED},
    _A.ARCHIVE: frozenset(_S) - {_S.ARCHIVED},
}
"""The statuses each action may leave."""

STOPS: dict[TemplateAction, TemplateStatus] = {
    _A.PAUSE: _S.PAUSED,
    _A.OFFLINE: _S.OFFLINE,
    _A.ARCHIVE: _S.ARCHIVED,
}
"""The actions that end claiming, with where they lead. Asked again there, they change nothing and tell Redis once
more: whoever heard 503 because Redis was away asks again until it has heard."""


def status_by_clock(claim_start: datetime, claim_end: datetime, now: datetime) -> TemplateStatus:
    """The status of a published template that nobody has stopped."""
    if now < claim_start:
        return _S.SCHEDULED
    return _S.ACTIVE if now < claim_end else _S.ENDED


def effective_status(row: Mapping[str, Any], now: datetime) -> TemplateStatus:
    """The status of a row of ``coupon_template`` (``status``, ``claim_start``, ``claim_end``) at ``now``."""
    stored = TemplateStatus(row["status"])
    return status_by_clock(row["claim_start"], row["claim_end"], now) if stored in CLOCKED else stored


def status_after(
    action: TemplateAction, row: Mapping[str, Any], now: datetime, *, by_two: bool = False
) -> TemplateStatus | None:
    """The status that ``action`` moves the template to; None when it is there already and nothing is to be done.

    ``by_two``: publishing it needs approval. Raises ``Conflict`` ``INVALID_STATUS``, with the present
    ``current_status``, when the action cannot leave it.
    """
    present = effective_status(row, now)
    if STOPS.get(action) == present:
        return None
    if present not in LEAVES[action]:
        possible = ", ".join(sorted(LEAVES[action]))
        raise Conflict(
            "INVALID_STATUS",
            f"{action} is for a template that is {possible}; this one is {present}",
            current_status=present.value,
        )
    if action is _A.PUBLISH and by_two:
        return _S.PENDING_APPROVAL
    if action is _A.HAND_BACK:
        return _S.DRAFT
    return STOPS.get(action) or status_by_clock(row["claim_start"], row["claim_end"], now)
