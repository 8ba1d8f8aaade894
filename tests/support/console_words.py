"""The words of the console, as they stand in its code and templates, and what of them has no Chinese yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from web.console.language import CATALOGUES, OF_THE_SHOP

CONSOLE = CATALOGUES.parent
SHOP = OF_THE_SHOP.parent

OF_THE_CORE = "core.po"
"""What the core says of wrong fields, which stands in no file of the console."""

KEYWORDS = {"_": None, "gettext": None, "ngettext": (1, 2), "N_": None}


def words() -> set[str]:
    """Every text that is translated; of plurals the form for one."""
    return {text for folder in (CONSOLE, SHOP) for text in _words_of(folder)}


def _words_of(folder: Path) -> set[str]:
    found = extract_from_dir(
        folder,
        method_map=[("**.py", "python"), ("templates/**.html", "jinja2.ext.babel_extract")],
        options_map={"templates/**.html": {"extensions": "jinja2.ext.do", "silent": "false", "trimmed": "true"}},
        keywords=KEYWORDS,
    )
    return {message[0] if isinstance(message, tuple) else message for _, _, message, _, _ in found}


def catalogues(language: str) -> Iterator[tuple[str, Catalog]]:
    """Each catalogue of a language, by the name of its file."""
    for path in sorted(path for folder in (CATALOGUES, OF_THE_SHOP) for path in (folder / language).glob("*.po")):
        yield path.name, _read(path)


def _read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale="zh_Hans_CN", abort_invalid=True)


def as_entries(missing: set[str]) -> str:
    """The texts as a catalogue has them, to be pasted and filled in."""
    quoted = [text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for text in sorted(missing)]
    return "\n".join(f'msgid "{text}"\nmsgstr ""\n' for text in quoted)
