"""Views without what the library does around them at each request, where the request needs none of it.

flask-openapi3 looks through the description of a query and reads each parameter by itself, which costs as much as
finding out who calls. What is as it should be is read here by the same models; what is not goes the library's way, and
is refused in its words.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_type_hints

from flask import request
from pydantic import BaseModel, ValidationError

View = Callable[..., Any]
Model = type[BaseModel]


def lean(view: View) -> View:
    """``view`` without its wrapper, when it takes nothing but a path and a query."""
    inner: View | None = getattr(view, "__wrapped__", None)
    wrapper: object = getattr(inner, "view", None)
    if inner is None or wrapper is not view:
        return view  # flask-openapi3 notes its wrapper in ``view``; any other one is there for a reason
    if not inspect.signature(inner).parameters.keys() <= {"path", "query"}:
        return view
    models: dict[str, Model] = get_type_hints(inner)
    return _reading(view, inner, models.get("path"), models.get("query"))


def _reading(view: View, inner: View, path: Model | None, query: Model | None) -> View:
    if path is None and query is None:
        return inner
    in_path = frozenset() if path is None else path.model_fields.keys()

    @wraps(view)
    def read(**arguments: Any) -> Any:
        if arguments.keys() != in_path:
            return view(**arguments)
        models: dict[str, BaseModel] = {}
        try:
            if path is not None:
                models["path"] = path.model_validate(arguments)
            if query is not None:
                # The first of each name, as the library takes it.
                models["query"] = query.model_validate(request.args.to_dict() if request.query_string else {})
        except ValidationError:
            return view(**arguments)
        return inner(**models)

    return read
