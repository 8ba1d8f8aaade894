"""Nothing of one machine, nothing put off, nothing without a word of explanation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.checkout import ROOT, name_of, python_files, source_files, text_files

MACHINE_PATHS = re.compile(
    "|".join(
        (
            rf"{re.escape(str(ROOT))}\b",
            r"(?<![\w.])/(?:home|Users)/\w+",
            r"(?<![\w.])/root/\.?\w+",
        )
    )
)
REGISTRIES = re.compile(r"https?://|--(?:extra-)?index-url|--find-links|file://|git\+")
# In pieces, so that this file does not find itself.
PUT_OFF = re.compile("|".join(("TO" + "DO", "FIX" + "ME", r"mark\." + r"skip\b", "x" + "fail")))
SWALLOWED = re.compile(r"except(?: Base)?(?: Exception)?:\s*\n\s*pass\b")


def test_no_file_names_a_path_of_a_machine() -> None:
    """A checkout works wherever it lies."""
    assert [] == [found for path in text_files() for found in lines_with(MACHINE_PATHS, path)]


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt", "Makefile", ".ci/run", "deploy/Containerfile"])
def test_no_registry_is_named(name: str) -> None:
    """Where packages come from is the machine's affair."""
    assert [] == list(lines_with(REGISTRIES, ROOT / name))


def test_nothing_is_put_off() -> None:
    """No notes to ourselves, no test that is switched off; one that cannot run somewhere says why (skipif)."""
    assert [] == [found for path in python_files() for found in lines_with(PUT_OFF, path)]


def test_no_error_is_swallowed_unseen() -> None:
    """``suppress`` names what it lets go."""
    assert [] == [name_of(path) for path in python_files() if SWALLOWED.search(path.read_text(encoding="utf-8"))]


def test_every_module_has_a_docstring() -> None:
    """Packages and tests too; a package's may be a line."""
    assert [] == [name_of(path) for path in python_files() if not ast.get_docstring(tree_of(path))]


def test_everything_public_has_a_docstring() -> None:
    """Functions and classes at the top of a module that is installed, and the public methods of these classes; what
    several classes of a module have in common is said by one of them."""
    assert [] == [f"{name_of(path)}: {name}" for path in source_files() for name in public_without_docstring(path)]


def test_every_test_says_what_it_shows() -> None:
    """Its name is a sentence, and its docstring says it."""
    tests = (
        (path, node)
        for path in python_files()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )

    assert [] == [f"{name_of(path)}: {node.name}" for path, node in tests if not ast.get_docstring(node)]


def test_the_searches_find_something() -> None:
    """The patterns above do bite."""
    assert MACHINE_PATHS.search(f'path = "{ROOT}/x"')
    assert REGISTRIES.search("--extra-index-url x")
    assert PUT_OFF.search("@pytest.mark." + "skip")
    assert not PUT_OFF.search("@pytest.mark." + "skipif(sys.platform)")
    assert SWALLOWED.search("    except Exception:\n        pass")


def lines_with(pattern: re.Pattern[str], path: Path) -> Iterator[str]:
    """``file:line: text`` for each line in which the pattern is found."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if pattern.search(line):
            yield f"{name_of(path)}:{number}: {line.strip()}"


def tree_of(path: Path) -> ast.Module:
    """The file, parsed."""
    return ast.parse(path.read_text(encoding="utf-8"))


def public_without_docstring(path: Path) -> Iterator[str]:
    """Names of what is public and says nothing about itself."""
    public = [node for node in tree_of(path).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    methods = [(node.name, method) for node in public if isinstance(node, ast.ClassDef) for method in methods_of(node)]
    said = {method.name for _, method in methods if ast.get_docstring(method)}
    for node in public:
        if not node.name.startswith("_") and not ast.get_docstring(node):
            yield node.name
    for owner, method in methods:
        if not owner.startswith("_") and not method.name.startswith("_") and method.name not in said:
            yield f"{owner}.{method.name}"


def methods_of(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """The functions in a class."""
    return [part for part in node.body if isinstance(part, ast.FunctionDef)]
