"""Making a page of a template and what it shows."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from flask import Response, g, request, url_for
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from web.console import language, show
from web.console.audit_word import action_word
from web.console.core_word import subject_words, trigger_words
from web.console.field_label import label_of
from web.console.notice import notice
from web.console.page_table import BY_ENDPOINT, navigation
from web.console.word import reason_of, scope_word, tone_of, word
from web.context import web_of_app

HERE = Path(__file__).parent
STATIC = HERE / "static"


def render(template: str, http_status: int = 200, /, **shown: Any) -> Response:
    """A page of the console. Whatever a template names and is not given is an error, never an empty place."""
    visitor = g.get("visitor")
    endpoint = (request.endpoint or "").rpartition(".")[2]
    around = {
        "visitor": visitor,
        "form_token": visitor.form_token if visitor else "",
        "groups": list(navigation(visitor.principal.scopes)) if visitor else [],
        "here": BY_ENDPOINT.get(endpoint),
        "lang": language.language(),
        "notice": notice(),
        "path": request.full_path.rstrip("?"),
    }
    text = environment().get_template(template).render(around | shown)
    return Response(text, http_status, content_type="text/html; charset=utf-8")


@cache
def environment() -> Environment:
    """Where templates come from, and the words they may use beside what a view gives them."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n", "jinja2.ext.do"],
    )
    made.install_gettext_callables(  # type: ignore[attr-defined]  # the extension brings it
        language.gettext, language.ngettext, newstyle=True
    )
    made.globals |= {
        "url": _url,
        "static": static_url,
        "time": show.time,
        "until": show.until,
        "window": show.window,
        "told": show.told,
        "money": show.money,
        "number": show.number,
        "percent": show.percent,
        "odds": show.odds,
        "span": show.span,
        "plain": show.plain,
        "yes_no": show.yes_no,
        "word": word,
        "scope_word": scope_word,
        "action_word": action_word,
        "tone": tone_of,
        "trigger": trigger_words,
        "subject": subject_words,
        "reason": reason_of,
        "label_of": label_of,
        "key_name": _key_name,
        "LANGUAGES": language.LANGUAGES,
        "viewer_zone": show.viewer_zone,
    }
    return made


def _key_name(operator: str) -> str | None:
    """The name of the key that acted; None for what is no key."""
    return web_of_app().names.name_of(operator)


def _url(endpoint: str, **values: Any) -> str:
    """The address of a page of the console."""
    return url_for(f"console.{endpoint}", **values)


def static_url(name: str) -> str:
    """The address of a file, with a mark of its content: a browser keeps it for as long as it is the same."""
    return url_for("console.static_file", file=name, v=_mark(name))


@cache
def _mark(name: str) -> str:
    return sha256((STATIC / name).read_bytes()).hexdigest()[:12]
