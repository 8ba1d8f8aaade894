"""An answer over HTTP, and what a problem must look like (API.md, Errors)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PROBLEM = "application/problem+json"
MEMBERS = {"type", "title", "status", "code", "detail", "errors"}


@dataclass(frozen=True)
class Reply:
    """What came back. ``headers`` by their names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    def ok(self, status: int = 200) -> Any:
        """The JSON of an answer that must have this status."""
        assert status == self.status, self.body[:500]
        assert self.headers["content-type"].startswith("application/json")
        assert self.headers["x-request-id"]
        return self.json

    def problem(self, status: int, code: str) -> dict[str, Any]:
        """The problem, which must have this status and code, be well-formed and say when to ask again if that helps."""
        assert status == self.status, self.body[:500]
        problem = self.any_problem()
        assert code == problem["code"]
        return problem

    def any_problem(self) -> dict[str, Any]:
        """The problem, whatever it is."""
        assert PROBLEM == self.headers["content-type"]
        problem = self.json
        assert set(problem) >= MEMBERS
        assert self.status == problem["status"]
        assert problem["code"] == problem["code"].upper()
        assert all({"field", "message"} == set(error) for error in problem["errors"])
        assert self.headers["x-request-id"]
        if self.status in (429, 503):
            assert int(self.headers["retry-after"]) >= 1
        return dict(problem)

    def bad_fields(self) -> list[str]:
        """The fields that a 422 names, each once, sorted."""
        return sorted({error["field"] for error in self.problem(422, "VALIDATION_FAILED")["errors"]})
