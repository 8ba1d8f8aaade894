"""The direction of imports (pyproject.toml, [tool.importlinter]), and no file that nobody needs."""

from __future__ import annotations

from pathlib import Path

import grimp
import pytest
from importlinter.cli import lint_imports

from coupon_workers.cli.main import COMMANDS
from tests.tidy.checkout import ROOT, SOURCE_FOLDERS

STARTED_BY_NAME = {
    *(module for module, _ in COMMANDS.values()),
    "coupon_workers.cli.main",  # pyproject.toml
    "coupon_workers.embedded.launcher",  # run by its path
    *(f"{folder}.__main__" for folder in ("actors", "web", "schedules")),  # Procfile
}

AHEAD_OF_ITS_USE: set[str] = set()


def test_imports_go_in_one_direction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The shells use the core, never one another; the core uses none of them."""
    result = lint_imports(config_filename=str(ROOT / "pyproject.toml"), cache_dir=str(tmp_path))

    assert 0 == result, capsys.readouterr().out


def test_every_module_is_needed() -> None:
    """Imported by another, or started by its name; what waits for its use is listed, and leaves the list with it."""
    graph = grimp.build_graph(*SOURCE_FOLDERS, cache_dir=None)
    packages = {module for module in graph.modules if graph.find_children(module)}

    idle = {module for module in graph.modules - packages if not graph.find_modules_that_directly_import(module)}

    assert AHEAD_OF_ITS_USE == idle - STARTED_BY_NAME
