"""This checkout as the tidy tests see it: its files, by kind."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]

SOURCE_FOLDERS = ("coupon_workers", "actors", "web", "schedules")
"""What is installed."""

PYTHON_FOLDERS = (*SOURCE_FOLDERS, "bench", "tests")


def source_files() -> list[Path]:
    """Every Python file that is installed."""
    return _python_files(SOURCE_FOLDERS)


KINDS = ("templates", "static", "translations")
"""Folders of what makes pages."""


def python_files() -> list[Path]:
    """Every Python file of ours."""
    return _python_files(PYTHON_FOLDERS)


def documents() -> list[Path]:
    """Every Markdown file of ours."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def console_files() -> list[Path]:
    """Every template, style, script and catalogue of the console and the shop."""
    folders = [ROOT / "web" / part / kind for part in ("console", "shop") for kind in KINDS]
    return sorted(path for folder in folders for path in folder.glob("**/*.*"))


def text_files() -> list[Path]:
    """Every file of ours that is text."""
    scripts = [*sorted((ROOT / "lua").glob("*.lua")), *deploy_files()]
    others = [ROOT / name for name in ("Makefile", "Procfile", "pyproject.toml", "constraints.txt", ".ci/run")]
    return [*python_files(), *documents(), *scripts, *console_files(), *others]


def deploy_files() -> list[Path]:
    """What installations take from: units, containers, alerts, a dashboard."""
    return sorted(path for path in (ROOT / "deploy").rglob("*") if path.is_file())


def name_of(path: Path) -> str:
    """The path from the top of the checkout, for people and for the names of tests."""
    return path.relative_to(ROOT).as_posix()


def _python_files(folders: tuple[str, ...]) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
