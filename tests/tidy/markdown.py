"""Markdown, as far as the tidy tests look into it: fenced blocks, links, headings, code spans, tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")

RUN = "sh run"
"""The words after the fence of a block that the tests run."""

RUN_PYTHON = "python run"
"""The same of Python, all blocks of a document in one program."""


@dataclass(frozen=True)
class Block:
    """A fenced block: the words after the fence, the text between, the line it begins at, and its place."""

    info: str
    text: str
    line: int
    start: int
    end: int


@dataclass(frozen=True)
class Document:
    """A Markdown file."""

    path: Path
    text: str

    @property
    def blocks(self) -> list[Block]:
        """Its fenced blocks, in order."""
        return [
            Block(match[1].strip(), match[2], self.text.count("\n", 0, match.start()) + 1, match.start(), match.end())
            for match in _FENCE.finditer(self.text)
        ]

    @property
    def prose(self) -> str:
        """Everything but the fenced blocks."""
        return _FENCE.sub("", self.text)

    def prose_between(self, first: Block, second: Block) -> str:
        """What is said between two blocks."""
        return self.text[first.end : second.start].strip()

    @property
    def links(self) -> list[str]:
        """The targets of its links."""
        return _LINK.findall(self.prose)

    @property
    def headings(self) -> list[str]:
        """Its headings, in order."""
        return _HEADING.findall(self.prose)

    @property
    def anchors(self) -> set[str]:
        """What may stand after ``#`` in a link to it."""
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in self.headings}

    @property
    def spans(self) -> list[str]:
        """Its code spans."""
        return _SPAN.findall(self.prose)

    @property
    def code(self) -> str:
        """All code in it: spans and blocks."""
        return "\n".join([*self.spans, *(block.text for block in self.blocks)])

    def section(self, heading: str) -> str:
        """What stands below a heading, up to the next of any depth."""
        return re.split(r"^#{1,6} ", self.text.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def read(path: Path) -> Document:
    """The document at ``path``."""
    return Document(path, path.read_text(encoding="utf-8"))


def table_rows(text: str) -> Iterator[list[str]]:
    """The cells of each row of the tables in ``text``, without heads and rulers."""
    lines = text.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("|") and not following.startswith("|---") and not line.startswith("|---"):
            yield [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
