"""Files and functions stay small enough to be known by heart, with room to breathe."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median_low

from tests.tidy.checkout import ROOT, console_files, name_of, python_files, source_files

MOST_LINES = 400
MOST_LINES_OF_TESTS = 500
"""A file of tests is a list of sentences that do not lean on one another: it bears a little more."""

MOST_LINES_OF_A_FUNCTION = 60
MEDIAN_LINES = range(30, 151)
"""Below, things are taken apart too far; above, too little."""

MEDIAN_LINES_OF_A_FUNCTION = 20


def test_no_file_is_too_long() -> None:
    """Tests, scripts and the console's templates too; a catalogue is a list, and as long as it is."""
    console = [path for path in console_files() if path.suffix != ".po"]
    files = (*python_files(), *(ROOT / "lua").glob("*.lua"), *console)
    sizes = {name_of(path): lines_of(path) for path in files}

    assert {} == {name: lines for name, lines in sizes.items() if lines > most_lines(name)}


def test_no_function_is_too_long() -> None:
    """Counted with its docstring."""
    sizes = {f"{name_of(path)}:{name}": size for path in python_files() for name, size in functions_of(path)}

    assert {} == {name: size for name, size in sizes.items() if size > MOST_LINES_OF_A_FUNCTION}


def test_files_are_neither_heaps_nor_crumbs() -> None:
    """The median file that is installed; packages' own files do not count."""
    sizes = [lines_of(path) for path in source_files() if path.name != "__init__.py"]

    assert median_low(sizes) in MEDIAN_LINES


def test_functions_are_short() -> None:
    """The median function that is installed."""
    sizes = [size for path in source_files() for _, size in functions_of(path)]

    assert median_low(sizes) <= MEDIAN_LINES_OF_A_FUNCTION


def most_lines(name: str) -> int:
    """How many lines a file may have."""
    return MOST_LINES_OF_TESTS if name.startswith("tests/") else MOST_LINES


def lines_of(path: Path) -> int:
    """How many lines a file has."""
    return len(path.read_text(encoding="utf-8").splitlines())


def functions_of(path: Path) -> Iterator[tuple[str, int]]:
    """The functions of a file, each with its lines, without its decorators."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1
