"""docs/settings.md lists exactly the settings the code has, in their order, with their defaults and bounds."""

from __future__ import annotations

import re
from pathlib import Path

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo

from coupon_workers.runtime.settings import PREFIX, Settings
from tests.tidy.checkout import ROOT, documents, name_of, source_files
from tests.tidy.markdown import read, table_rows

ROWS = [row for row in table_rows(read(ROOT / "docs" / "settings.md").text) if row[0].startswith(f"`{PREFIX}")]
FIELDS = Settings.model_fields


def test_every_setting_is_documented_and_nothing_else() -> None:
    """In the order of the code."""
    assert [f"`{PREFIX}{field.upper()}`" for field in FIELDS] == [row[0] for row in ROWS]


def test_defaults_are_the_codes_own() -> None:
    """None is "unset", and a count that depends on the machine is told in words."""
    assert [default_of(field) for field in FIELDS.values()] == [row[1] for row in ROWS]


def test_bounds_are_the_codes_own() -> None:
    """``least to most``, where a setting has both."""
    missing = [
        row[0] for row, field in zip(ROWS, FIELDS.values(), strict=True) if (bounds_of(field) or "") not in row[2]
    ]

    assert [] == missing


def test_no_document_knows_another_setting() -> None:
    """A variable that nothing reads misleads. Error codes and other words of the code may begin alike."""
    known = {f"{PREFIX}{field.upper()}" for field in FIELDS}
    words = {word for path in source_files() for word in names_in(path, rf'(?<=")({PREFIX}[A-Z_]+)(?=")')}

    named = {(name_of(path), name) for path in documents() for name in names_in(path, rf"\b({PREFIX}[A-Z_]+[A-Z])\b")}

    assert set() == {(document, name) for document, name in named if name not in known | words}


def names_in(path: Path, pattern: str) -> set[str]:
    """What the pattern finds in a file."""
    return set(re.findall(pattern, path.read_text(encoding="utf-8")))


def default_of(field: FieldInfo) -> str:
    """The default as the document writes it."""
    if field.default_factory is not None:
        return "one a core"
    return "unset" if field.default is None else f"`{field.default}`"


def bounds_of(field: FieldInfo) -> str | None:
    """The bounds as the document writes them."""
    least = next((bound.ge for bound in field.metadata if isinstance(bound, Ge)), None)
    most = next((bound.le for bound in field.metadata if isinstance(bound, Le)), None)
    return f"{least:,} to {most:,}" if least is not None and most is not None else None
