"""The shapes of claims, for the published description. The hot view checks its input by hand to the same rules."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from web.query_model import QueryModel

Identity = Annotated[str, Field(pattern=r"^[0-9]{1,19}$", description="64 bits as decimal text")]
MAX_BATCH = 500

EXAMPLE: JsonDict = {
    "template_id": "653247040368672768",
    "user_id": "u-1001",
    "request_id": "order-form-8f1c",
    "channel": "app",
}


class ClaimBody(BaseModel):
    """One claim. Only the first three fields are required."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"title": "ClaimBody", "example": EXAMPLE})

    template_id: Identity | int = Field(examples=["653247040368672768"])
    user_id: str | int = Field(
        description="1 to 64 visible characters without spaces; integers are read as their decimal text",
        examples=["u-1001"],
    )
    request_id: str = Field(
        min_length=1,
        max_length=128,
        description="belongs to its user and template; the same one again is answered, not claimed again",
        examples=["order-form-8f1c"],
    )
    channel: str | None = Field(None, min_length=1, max_length=128, examples=["app"])
    device_id: str | None = Field(None, min_length=1, max_length=128)
    ip: str | None = Field(None, min_length=1, max_length=128, examples=["203.0.113.7"])
    address_hash: str | None = Field(None, min_length=1, max_length=128)


class BatchBody(BaseModel):
    """Up to 500 claims, decided in order."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"claims": [EXAMPLE]}})

    claims: list[ClaimBody] = Field(min_length=1, max_length=MAX_BATCH)


class ClaimAnswer(BaseModel):
    """An accepted claim (202), or the present status of one that was accepted before (200, ``replayed``)."""

    claim_id: Identity
    status: Literal["queued", "issued", "rejected"]
    template_id: Identity
    user_id: str
    replayed: bool
    reason: str | None = Field(None, description="why it was rejected; only then present")


class BatchItem(BaseModel):
    """One claim of a batch: an accepted or replayed one with its id, a refused one with its code."""

    status: int = Field(description="the HTTP status it would have had alone")
    claim_id: Identity | None = None
    claim_status: Literal["queued", "issued", "rejected"] | None = Field(
        None, description="how the claim stands; queued when it was accepted just now"
    )
    replayed: bool | None = None
    code: str | None = None
    detail: str | None = None


class ClaimBatchAnswer(BaseModel):
    """The results, in the order of the request."""

    results: list[BatchItem]


class ClaimStatusAnswer(BaseModel):
    """How a claim stands. ``coupon_no`` equals ``claim_id`` once it is issued."""

    claim_id: Identity
    status: Literal["queued", "issued", "rejected"]
    coupon_no: Identity | None
    template_id: Identity
    user_id: str | None = Field(description="null while the claim is queued")
    reason: str | None
    queued_at: str
    settled_at: str | None


class ClaimPath(BaseModel):
    """The claim in the path."""

    claim_id: str


class WaitQuery(QueryModel):
    """How long to wait for a queued claim to be settled."""

    wait: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = Field(0, description="seconds")
