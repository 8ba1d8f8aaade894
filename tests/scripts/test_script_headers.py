"""Header and body of every script are held together: purpose, KEYS, ARGV and the words it returns."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from coupon_workers.runtime.lua_script import SCRIPTS

NAMES = sorted(path.stem for path in SCRIPTS.glob("*.lua"))
GROUP_SIZES = {"pairs": 2, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
FORBIDDEN = {"KEYS", "SCAN", "HSCAN", "SSCAN", "ZSCAN", "FLUSHALL", "FLUSHDB", "RANDOMKEY"}


@dataclass(frozen=True)
class Script:
    """A script in its parts."""

    purpose: str
    keys: str
    argv: str
    returns: str
    body: str

    @property
    def calls(self) -> set[str]:
        """The commands it runs."""
        return {name.upper() for name in re.findall(r"redis\.p?call\(\s*'([^']+)'", self.body, re.IGNORECASE)}

    @property
    def words_returned(self) -> set[str]:
        """Words in upper case that are no command's name or option."""
        return set(re.findall(r"'([A-Z][A-Z_]+)'", without_calls(self.body)))


def read(name: str) -> Script:
    """Take a file apart; a part that is missing is empty."""
    source = (SCRIPTS / f"{name}.lua").read_text(encoding="utf-8")
    header, _, body = source.removeprefix("--[[\n").partition("\n]]\n")
    rest, _, returns = header.partition("\nReturns")
    rest, _, argv = rest.partition("\nARGV")
    purpose, _, keys = rest.partition("\nKEYS\n")
    return Script(purpose, keys, argv, returns, re.sub(r"--[^\n]*", "", body))


def without_calls(body: str) -> str:
    """The body without the arguments of its calls to Redis."""
    body = re.sub(r"'[^'\n]*'", lambda text: re.sub("[()]", "", text[0]), body)  # a text's brackets close nothing
    kept, depth, at = [], 0, 0
    for call in re.finditer(r"redis\.p?call\(", body):
        if call.start() < at:
            continue
        kept.append(body[at : call.start()])
        depth, at = 1, call.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(body[at], 0)
            at += 1
    return "".join([*kept, body[at:]])


def numbers(pattern: str, part: str) -> set[int]:
    """The numbers that ``pattern`` finds."""
    return {int(number) for number in re.findall(pattern, part, re.MULTILINE)}


@pytest.mark.parametrize("name", NAMES)
def test_a_script_begins_with_its_name_and_purpose(name: str) -> None:
    """``<file name>: what it does, in one sentence.``"""
    source = (SCRIPTS / f"{name}.lua").read_text(encoding="utf-8")

    assert re.match(rf"--\[\[\n{name}: [^\n]+", source)


@pytest.mark.parametrize("name", NAMES)
def test_every_key_used_is_documented_and_every_documented_key_is_used(name: str) -> None:
    """KEYS are numbered from one, each with its shape."""
    script = read(name)

    documented = numbers(r"^ {1,2}(\d+) \S", script.keys)

    assert set(range(1, len(documented) + 1)) == documented
    assert documented == numbers(r"KEYS\[(\d+)\]", script.body)


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_used_is_documented_and_every_documented_argument_is_used(name: str) -> None:
    """ARGV is numbered from one; what repeats is told with the size of its group."""
    script = read(name)

    documented = numbers(r"^ {1,2}(\d+) \S", script.argv)
    sizes = {size for word, size in GROUP_SIZES.items() if re.search(rf"\b{word}\b", script.argv)}
    strides = {int(stride) for stride in re.findall(r"for \w+ = [^\n]*, (\d+) do", script.body) if int(stride) < 100}

    assert documented == numbers(r"ARGV\[(\d+)\]", script.body)
    assert strides == sizes


@pytest.mark.parametrize("name", NAMES)
def test_the_documented_words_are_those_the_body_returns(name: str) -> None:
    """No word too many, none too few."""
    script = read(name)

    documented = set(re.findall(r"\b[A-Z][A-Z_]{2,}\b", script.returns))

    assert script.returns
    assert documented == script.words_returned


@pytest.mark.parametrize("name", NAMES)
def test_no_script_searches_the_key_space(name: str) -> None:
    """KEYS and SCAN cost the whole server, and a cluster's script may touch its own keys only."""
    assert set() == read(name).calls & FORBIDDEN


def test_there_are_scripts() -> None:
    """The tests above did run."""
    assert "claim" in NAMES
