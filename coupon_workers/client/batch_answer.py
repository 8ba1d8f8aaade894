"""Batches, redeem codes and tags, as they are answered: names and fields are those of the published description."""

from __future__ import annotations

from typing import Literal, TypedDict


class NewBatchAnswer(TypedDict):
    """A batch that has been taken on."""

    batch_no: str
    status: Literal["staging", "ready", "running", "paused", "done", "cancelled", "failed"]


class ShardCount(TypedDict):
    """Of the parts in which a batch is issued, how many are through."""

    total: int
    done: int


class BatchAnswer(TypedDict):
    """A batch now. `rows` = `valid` + `invalid`; `valid` = `duplicate` + `issued` + `refused` + `pending`."""

    batch_no: str
    template_id: str
    name: str
    status: Literal["staging", "ready", "running", "paused", "done", "cancelled", "failed"]
    reason: str | None
    policy: Literal["all_or_nothing", "best_effort"]
    tags: str | None
    file_name: str | None
    rows: int
    valid: int
    duplicate: int
    invalid: int
    issued: int
    refused: int
    pending: int
    reserved: int
    shards: ShardCount
    percent: float
    rows_per_second: float | None
    eta_seconds: int | None
    needs_approval: bool
    approved_by: str | None
    created_by: str
    created_at: str
    start_at: str | None
    started_at: str | None
    finished_at: str | None


class TagsAnswer(TypedDict):
    """A user's tags, sorted."""

    user_id: str
    tags: list[str]


class CodeBatchAnswer(TypedDict):
    """A batch of codes at this moment. No code is in it."""

    code_batch_id: str
    template_id: str
    status: Literal["generating", "done", "revoked", "expired"]
    quantity: int
    length: int
    prefix: str
    channel: str | None
    check_digit: bool
    expires_at: str | None
    generated: int
    used: int
    reserved: int
    percent: float
    codes_per_second: float
    eta_seconds: int | None
    export: Literal["kept", "fetched", "dropped"]
    fetched_at: str | None
    fetched_by: str | None
    pepper: str
    created_by: str
    created_at: str
    finished_at: str | None
    ended_by: str | None
    ended_at: str | None


class CodeAnswer(TypedDict):
    """A code, without its text."""

    state: Literal["pending", "unused", "used", "expired", "revoked"]
    code_batch_id: str
    template_id: str
    channel: str | None
    expires_at: str
    user_id: str | None
    coupon_no: str | None
    used_at: str | None
