"""constraints.txt pins everything that is installed, and nothing else, for every Python that we support."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.tidy.checkout import ROOT

LINES = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
PYTHONS = ("3.11.0", "3.11.9", "3.12.0", "3.13.0", "3.14.0")
OF_THE_ENVIRONMENT = {"pip", "setuptools"}
"""What installs the others; HTTPie asks for it, for its plugins."""

SYSTEMS = (("linux", "Linux"), ("darwin", "Darwin"))


def test_each_line_pins_one_package_to_one_version() -> None:
    """In alphabetical order, each once; no addresses, no files, no ranges."""
    assert [] == [line for line in LINES if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!]+", line)]
    assert sorted(pins()) == [canonicalize_name(line.partition("==")[0]) for line in LINES]


def test_every_dependency_is_pinned() -> None:
    """Those that are asked for in pyproject.toml, with a version that it allows."""
    asked = [Requirement(line) for line in (*PROJECT["dependencies"], *(line for e in EXTRAS.values() for line in e))]

    refused = [
        str(requirement)
        for requirement in asked
        if not requirement.specifier.contains(pins().get(canonicalize_name(requirement.name), Version("0")))
    ]

    assert [] == refused


def test_dependencies_of_dependencies_are_pinned_and_nothing_more() -> None:
    """As the installed packages tell of their own; what is not installed here has none that we could know."""
    everything = [Requirement(line) for line in PROJECT["dependencies"]]
    everything += [Requirement(line) for extra in EXTRAS.values() for line in extra]

    needed = {name for environment in environments() for name in closure(everything, environment)}

    assert set(pins()) == needed - OF_THE_ENVIRONMENT


def test_what_is_installed_is_what_is_pinned() -> None:
    """The tests speak of the pinned versions; a package for another Python may be absent."""
    installed = {name: Version(distribution(name).version) for name in pins() if is_installed(name)}

    assert installed == {name: version for name, version in pins().items() if name in installed}


def pins() -> dict[str, Version]:
    """Package → version."""
    return {canonicalize_name(name): Version(version) for name, _, version in (line.partition("==") for line in LINES)}


def is_installed(name: str) -> bool:
    """Whether this environment has the package."""
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def environments() -> Iterable[dict[str, str]]:
    """The machines that we support, as the markers of requirements see them."""
    here = {name: str(value) for name, value in default_environment().items()}
    for python in PYTHONS:
        for platform, system in SYSTEMS:
            changed = {"python_full_version": python, "python_version": python.rpartition(".")[0]}
            yield {**here, **changed, "sys_platform": platform, "platform_system": system}


def closure(asked: Iterable[Requirement], environment: dict[str, str]) -> set[str]:
    """The names of all packages that are installed for these requirements."""
    seen: set[tuple[str, str]] = set()
    waiting = [(requirement, "") for requirement in asked]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({**environment, "extra": extra}):
            continue
        for wanted in ("", *requirement.extras):
            package = (canonicalize_name(requirement.name), wanted)
            if package not in seen:
                seen.add(package)
                if is_installed(requirement.name):
                    own = distribution(requirement.name).requires or ()
                    waiting += [(Requirement(line), wanted) for line in own]
    return {name for name, _ in seen}
