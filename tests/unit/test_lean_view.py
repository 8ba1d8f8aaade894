"""Views that are read without the library's wrapper: the same models, the same refusals."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from flask_openapi3 import APIBlueprint, OpenAPI
from pydantic import BaseModel, Field

from web.error_answer import validation_problem
from web.lean_view import lean
from web.query_model import QueryModel


class ThingPath(BaseModel):
    """A path."""

    name: str = Field(max_length=5)


class ThingQuery(QueryModel):
    """A query."""

    limit: int = Field(50, ge=1)
    sort: str | None = None


class Body(BaseModel):
    """A body."""

    word: str


api = APIBlueprint("things", __name__)


@api.get("/things/<name>")
def get_thing(path: ThingPath, query: ThingQuery) -> dict[str, Any]:
    """Both."""
    return {"name": path.name, "limit": query.limit, "sort": query.sort, "set": sorted(query.model_fields_set)}


@api.get("/boxes/<box>/things/<name>")
def get_boxed(path: ThingPath, box: str) -> dict[str, Any]:
    """More than the path's model has."""
    return {"name": path.name, "box": box}


@api.get("/things")
def get_things() -> dict[str, Any]:
    """Neither."""
    return {}


@api.post("/things")
def post_thing(body: Body) -> dict[str, Any]:
    """What is the library's to read."""
    return {"word": body.word}


def application(*, is_lean: bool) -> Flask:
    """The views, with the library's wrapper or without."""
    app = OpenAPI("test", validation_error_callback=validation_problem)
    app.register_api(api)
    if is_lean:
        app.view_functions = {name: lean(view) for name, view in app.view_functions.items()}
    return app


@pytest.mark.parametrize(
    "address",
    [
        "/things/a", "/things/a?limit=7&sort=x", "/things/a?limit=1&limit=2", "/things/a?limit=", "/things/a?sort=",
        "/things/a?limit=0", "/things/a?limit=x&other=1", "/things/a?other=1", "/things/too-long", "/things/%E4%B8%AD",
        "/things/a?sort=%E4%B8%AD%20+b", "/boxes/b/things/a", "/boxes/b/things/too-long", "/things",
    ],
)  # fmt: skip
def test_a_lean_view_answers_as_the_library_has_it(address: str) -> None:
    """What it accepts, what it refuses, and the words."""
    theirs, ours = (application(is_lean=is_lean).test_client().get(address) for is_lean in (False, True))

    assert (theirs.status_code, theirs.get_data()) == (ours.status_code, ours.get_data())


def test_only_what_is_read_here_is_unwrapped() -> None:
    """A body is the library's; a function it has not wrapped stays as it is."""
    views = application(is_lean=False).view_functions

    assert getattr(views["things.get_things"], "__wrapped__", None) is lean(views["things.get_things"])
    assert lean(views["things.get_thing"]) is not views["things.get_thing"]
    assert lean(views["things.post_thing"]) is views["things.post_thing"]
    assert lean(validation_problem) is validation_problem
