"""Documents agree with the code: links, files, commands, addresses of the API; and the two READMEs with one another."""

from __future__ import annotations

import re

import pytest
from flask import Flask

from coupon_workers.cli.demo import demo
from coupon_workers.cli.main import COMMANDS
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.settings import Settings
from coupon_workers.schema import Base
from tests.tidy.checkout import ROOT, SOURCE_FOLDERS, documents, name_of, python_files
from tests.tidy.markdown import read, table_rows
from web.app import create_app

DOCUMENTS = [name_of(path) for path in documents()]

_FILE = re.compile(rf"(?:{'|'.join((*SOURCE_FOLDERS, 'lua', 'tests', 'docs', 'bench', 'deploy'))})/[\w./-]*|\.ci/run")
_COMMAND = re.compile(r"(?<![\w/-])coupon-workers ([a-z][a-z-]*)")
_ADDRESS = re.compile(r"(?<![\w.])/(?:v1/[^\s`\"?|)]+|livez|readyz|metrics|openapi\.json|docs)(?![\w/.-])")


@pytest.fixture(scope="module")
def routes(settings: Settings) -> list[str]:
    """Every address of the API, but for what people look at, with ``*`` for what varies in it."""
    app: Flask = create_app(make_services(settings))
    rules = {rule.rule for rule in app.url_map.iter_rules()}
    return sorted(re.sub(r"<[^>]+>", "*", rule) for rule in rules if not rule.startswith(("/docs/", "/console")))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    """A file that exists, and a heading in it."""
    document = read(ROOT / name)

    broken = []
    for link in document.links:
        if not re.match(r"https?://", link):
            path, _, anchor = link.partition("#")
            target = (document.path.parent / path).resolve() if path else document.path
            if not target.exists() or (anchor and anchor not in read(target).anchors):
                broken.append(link)

    assert [] == broken


@pytest.mark.parametrize("name", DOCUMENTS)
def test_files_that_are_named_exist(name: str) -> None:
    """From the top of the checkout, unless a run makes them; what varies in a name stands in angle brackets."""
    spans = read(ROOT / name).spans

    named = {span for span in spans if _FILE.fullmatch(span)}
    made = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()

    assert set() == {file for file in named if not (ROOT / file).exists() and file not in made}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_that_are_named_exist(name: str) -> None:
    """``coupon-workers WORD``."""
    named = set(_COMMAND.findall(read(ROOT / name).code))

    assert set() == named - set(COMMANDS)


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme_says_how_to_choose_another_port_and_folder(name: str) -> None:
    """Port 8000 is the first that a machine has taken already. The demo's options are its own."""
    spans = " ".join(read(ROOT / name).spans)
    options = {option for parameter in demo.params for option in parameter.opts}

    assert {"COUPON_HTTP_PORT", "COUPON_DATA_DIR"} <= set(re.findall(r"(COUPON_\w+)=", spans))
    assert {"--port", "--data-dir"} <= options & set(re.findall(r"--[a-z-]+", spans))


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_every_command_is_in_the_readme(name: str) -> None:
    """A newcomer sees all there is."""
    named = set(_COMMAND.findall(read(ROOT / name).code))

    assert set(COMMANDS) == named


@pytest.mark.parametrize("name", DOCUMENTS)
def test_addresses_that_are_named_exist(name: str, routes: list[str]) -> None:
    """No document tells of an address that answers 404."""
    named = {re.sub(r"\{[^}]+\}|\$\w+|…", "*", address) for address in _ADDRESS.findall(read(ROOT / name).code)}

    assert set() == {address for address in named if not any(_is(route, address) for route in routes)}


def test_every_address_is_in_the_guide(routes: list[str]) -> None:
    """Nothing that the API offers is left to be found by chance."""
    guide = read(ROOT / "docs" / "api-guide.md").code

    missing = [route for route in routes if not re.search(_pattern(route) + r"(?![\w/-])", guide)]

    assert [] == missing


def test_every_part_and_every_table_is_in_the_architecture() -> None:
    """A new sub-package or table has its row."""
    spans = set(read(ROOT / "docs" / "architecture.md").spans)

    parts = {f"{name_of(path.parent)}/" for path in (ROOT / "coupon_workers").glob("*/__init__.py")}

    assert set() == parts - spans
    assert set() == set(Base.metadata.tables) - spans


def test_every_crash_point_is_in_the_guide_to_testing() -> None:
    """And none that the code does not have."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "coupon_workers").rglob("*.py")]
    points = {point for source in sources for point in re.findall(r'crash_point\("([^"]+)"\)', source)}

    section = read(ROOT / "docs" / "testing.md").section("Crash points")

    assert points == {point for row in table_rows(section) for point in re.findall(r"`([^`]+)`", row[0])}


def test_what_comments_refer_to_is_there() -> None:
    """DESIGN 3.1 is in architecture.md; CASES 15 and FAULTS 9 are in cases.md."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in python_files())
    architecture = read(ROOT / "docs" / "architecture.md")
    cases = read(ROOT / "docs" / "cases.md")

    sections = {heading.partition(". ")[0] for heading in architecture.headings if heading[0].isdigit()}
    sections |= {row[0] for row in table_rows(architecture.section("3. Invariants"))}

    assert set() == set(re.findall(r"\bDESIGN (\d+(?:\.\d+)?)", sources)) - sections
    for word, heading in (("CASES", "Cases"), ("FAULTS", "Faults")):
        cited = {number for numbers in re.findall(rf"\b{word} ([\d, and]*\d)", sources) for number in _numbers(numbers)}
        assert set() == cited - {number for row in table_rows(cases.section(heading)) for number in _numbers(row[0])}


def test_the_two_readmes_say_the_same() -> None:
    """The same examples, links and tables, in the same order."""
    english, chinese = read(ROOT / "README.md"), read(ROOT / "README.zh-CN.md")

    def shape(text: str) -> list[tuple[str, str]]:
        runnable = ("sh", "sh run", "json")
        return [(block.info, block.text) for block in read(ROOT / text).blocks if block.info in runnable]

    assert shape("README.md") == shape("README.zh-CN.md")
    assert len(english.headings) == len(chinese.headings)
    assert _other_links(english.links) == _other_links(chinese.links)


def test_decisions_are_numbered_and_listed() -> None:
    """From 0001 without a gap, each with its context, decision and consequences, each in the list by its own title."""
    folder = ROOT / "docs" / "decisions"
    pages = sorted(folder.glob("[0-9]*.md"))
    listed = dict(re.findall(r"\[\d{4}\]\(([^)]+)\) \| (.+) \|", read(folder / "README.md").text))

    titles = {page.name: read(page).headings[0].partition(": ")[2] for page in pages}

    assert [f"{number:04}" for number in range(1, len(pages) + 1)] == [page.name[:4] for page in pages]
    assert titles == listed
    for page in pages:
        assert ["Context", "Decision", "Consequences"] == re.findall(r"^\*\*(\w+)\.\*\*", read(page).text, re.MULTILINE)


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+", text)


def _other_links(links: list[str]) -> list[str]:
    """A picture is taken in each language; what is another README is left out."""
    return [link.replace("-zh.png", "-en.png") for link in links if "README" not in link or "/" in link]


def _is(route: str, address: str) -> bool:
    return re.fullmatch(_pattern(route), address) is not None


def _pattern(route: str) -> str:
    """The route's addresses as they are written: with something in the place of what varies."""
    return re.escape(route).replace(r"\*", r"[^/\s`\"?]+")
