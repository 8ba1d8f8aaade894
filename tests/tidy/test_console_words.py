"""The console speaks Chinese as well as English: every text of it, with the same places to fill in."""

from __future__ import annotations

import re

from tests.support.console_words import CONSOLE, OF_THE_CORE, SHOP, as_entries, catalogues, words

_PLACE = re.compile(r"%(?:\(\w+\))?[sd]")
_INLINE = re.compile(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:|https?://|//cdn", re.IGNORECASE)
_OWN = "http://www.w3.org/2000/svg"


def test_every_text_is_translated_once() -> None:
    """What is missing is told as it has to be written."""
    translated = [message.id for _, catalogue in catalogues("zh") for message in catalogue if message.id]
    names = [name[0] if isinstance(name, tuple) else name for name in translated]

    assert "" == as_entries(words() - set(names))
    assert [] == sorted({name for name in names if names.count(name) > 1})


def test_no_translation_is_empty_or_left_behind() -> None:
    """A text that has gone takes its translation with it."""
    said = words()

    for file, catalogue in catalogues("zh"):
        for message in catalogue:
            if message.id:
                name = message.id[0] if isinstance(message.id, tuple) else message.id
                assert message.string and all(message.string), f"{file}: {name}"
                assert file == OF_THE_CORE or name in said, f"{file}: {name}"
                assert not message.fuzzy, f"{file}: {name}"


def test_translations_have_the_same_places_to_fill_in() -> None:
    """``%(amount)s`` is found in both, or a page breaks in one language only."""
    for file, catalogue in catalogues("zh"):
        for message in catalogue:
            if message.id and isinstance(message.id, str):
                assert sorted(_PLACE.findall(message.id)) == sorted(_PLACE.findall(str(message.string))), file


def test_no_template_holds_a_script_or_a_style() -> None:
    """The policy sent with each page forbids both, and addresses elsewhere."""
    files = [
        path for kind in ("templates/*.html", "static/*") for folder in (CONSOLE, SHOP) for path in folder.glob(kind)
    ]

    found = {path.name: _INLINE.findall(path.read_text(encoding="utf-8").replace(_OWN, "")) for path in files}

    assert files
    assert {} == {name: parts for name, parts in found.items() if parts}
