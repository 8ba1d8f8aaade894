"""The words of the console in the reader's language. English stands in the code; Chinese in ``translations/zh/*.po``.

The catalogues are read as they are written, when the first page in their language is asked for: there is nothing to
compile, neither in a checkout nor in a wheel.
"""

from __future__ import annotations

from functools import cache
from gettext import NullTranslations
from io import BytesIO
from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import Translations
from flask import g, request

LANGUAGES = {"en": "English", "zh": "中文"}
LOCALES = {"en": "en", "zh": "zh_Hans_CN"}

COOKIE = "cw_language"

CATALOGUES = Path(__file__).parent / "translations"
OF_THE_SHOP = Path(__file__).parents[1] / "shop" / "translations"


def N_(text: str) -> str:  # noqa: N802 - the name by which gettext's tools find words in tables
    """Marks a text to be translated when it is shown."""
    return text


def language() -> str:
    """The reader's: chosen by the switch, else what the browser prefers, else English."""
    chosen: str | None = g.get("language")
    if chosen is None:
        chosen = request.cookies.get(COOKIE)
        if chosen not in LANGUAGES:
            chosen = _preferred()
        g.language = chosen
    return chosen


def _preferred() -> str:
    """Of zh-CN and en, in the browser's order, the first: werkzeug's own match takes an exact en before zh-CN."""
    spoken = (tag.partition("-")[0].lower() for tag in request.accept_languages.values())
    return next((name for name in spoken if name in LANGUAGES), "en")


def locale() -> str:
    """The reader's language as Babel names it."""
    return LOCALES[language()]


def gettext(text: str) -> str:
    """``text`` in the reader's language; as it is where nobody has translated it."""
    return catalogue(language()).gettext(text) if text else ""


def ngettext(one: str, many: str, number: int) -> str:
    """The form for ``number`` things, in the reader's language."""
    return catalogue(language()).ngettext(one, many, number)


@cache
def catalogue(name: str) -> NullTranslations:
    """Every catalogue of a language as one."""
    words: NullTranslations = NullTranslations()
    for path in sorted(path for folder in (CATALOGUES, OF_THE_SHOP) for path in (folder / name).glob("*.po")):
        compiled = BytesIO()
        with path.open("rb") as file:
            write_mo(compiled, read_po(file, locale=LOCALES[name]))
        compiled.seek(0)
        part = Translations(compiled)
        part.add_fallback(words)
        words = part
    return words
