"""Queries of an address: unknown names are refused, and what a request costs does not grow with the description."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict


class QueryModel(BaseModel):
    """Base of every query. The library asks for its JSON schema at each request: it is made once."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """As pydantic makes it."""
        return super().model_json_schema(*args, **options) if args or options else _schema(cls)


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return super(QueryModel, model).model_json_schema()  # type: ignore[misc, no-any-return]  # mypy knows super() in methods only
