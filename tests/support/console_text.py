"""What of a page is said in words: its text without codes, and the names that aids read out."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_CODES = frozenset({"code", "kbd", "pre", "textarea", "script", "style", "title", "del", "ins"})
"""Elements whose text is a value or a program's."""

_CLASSES = frozenset({"mono", "zone", "brand", "change", "was", "becomes"})
_VOID = frozenset({"input", "br", "img", "meta", "link", "rect", "path", "circle", "line", "hr"})
_SAID = ("aria-label", "alt")
_HALF_WIDTH = re.compile(r"[\u4e00-\u9fff”][,:;!?()]|[,:;!?()] ?[\u4e00-\u9fff“]")
_WORD = re.compile(r"[A-Za-z][A-Za-z'_-]+")


class _Listener(HTMLParser):
    """Keeps what is said outside of codes, and of what is in another language."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.read: list[str] = []
        self._open: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        foreign = not given.get("lang", "zh").startswith("zh")
        silent = foreign or tag in _CODES or bool(_CLASSES & set(given.get("class", "").split()))
        self.said += [given[name] for name in _SAID if name in given]
        if tag not in _VOID:
            self._open.append(silent)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID and self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not any(self._open):
            self.said.append(data)
            self.read.append(data)


def latin_words(page: str) -> set[str]:
    """The words in Latin letters that a page says outside of codes."""
    listener = _Listener()
    listener.feed(page)
    return {word for text in listener.said for word in _WORD.findall(text)}


def half_width_marks(page: str) -> list[str]:
    """Marks of English beside a word of Chinese, in the text of a page outside of codes."""
    listener = _Listener()
    listener.feed(page)
    return _HALF_WIDTH.findall("".join(listener.read))
