"""Every class of finding that the core can make, and every fact that it tells of one, has words in the console."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.checkout import ROOT
from web.console.fact_word import FACT_WORDS
from web.console.word import WORDS

READERS = ("*_differences.py", "*_difference.py", "*_case.py")
REPAIRS = ("*_repair.py", "repair.py")

MAKERS = frozenset({"add_coupon", "add_order", "_difference", "_of_batch", "Difference"})
"""What is called with a class, and with facts by their names."""

OF_A_FINDING = frozenset(
    {
        "finding_class",
        "subject",
        "evidence",
        "repair",
        "amount_minor",
        "template_id",
        "coupon_id",
        "here",
        "there",
        "outcome",
    }
)
"""Parts of a finding that have places of their own on its page."""

OF_A_STATEMENT = frozenset(
    {
        "as_of",
        "automatic",
        "batch_id",
        "code_batch_id",
        "comment",
        "day",
        "finding_id",
        "id",
        "now",
        "operator",
        "own",
        "page",
        "run_id",
        "user_ids",
    }
)
"""What statements and the audit log are given."""


def _trees(*patterns: str) -> Iterator[ast.Module]:
    for pattern in patterns:
        for path in sorted((ROOT / "coupon_workers" / "reconciliation").glob(pattern)):
            yield ast.parse(path.read_text(encoding="utf-8"))


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            named = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if named in MAKERS:
                yield node


def _texts(node: ast.AST | None) -> set[str]:
    """The texts that an expression may come to."""
    if isinstance(node, ast.IfExp):
        return _texts(node.body) | _texts(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def _classes() -> set[str]:
    """Given to whoever makes a difference, or to a name ``finding_class``; those of orders are keys of tables."""
    found: set[str] = set()
    for tree in _trees(*READERS):
        for call in _calls(tree):
            told = [keyword.value for keyword in call.keywords if keyword.arg == "finding_class"]
            found |= {text for node in (*told, *call.args[:1]) for text in _texts(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, value = node.targets[0].id, node.value
                if name == "finding_class":
                    found |= _texts(value)
                elif name in ("_MONEY", "_RETURN") and isinstance(value, ast.Dict):
                    found |= {text for key in value.keys for text in _texts(key)}
    return found


def _facts() -> set[str]:
    """Keys of what is written as evidence or outcome, arguments by name, and fields that are told one by one."""
    found: set[str] = set()
    for tree in _trees(*READERS, *REPAIRS):
        found |= {keyword.arg for call in _calls(tree) for keyword in call.keywords if keyword.arg}
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                found |= {text for key in node.keys for text in _texts(key)}
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                found |= _texts(node.slice)
            elif isinstance(node, ast.ClassDef) and node.name == "WrongTaker":
                found |= {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)}  # type: ignore[union-attr]  # fields have names
    return found - _classes() - OF_A_FINDING - OF_A_STATEMENT


def test_every_class_of_a_finding_has_words() -> None:
    """A page would be headed by a name of the core."""
    classes = _classes()

    assert len(classes) > 35
    assert [] == sorted(classes - WORDS.keys())


def test_every_fact_of_a_finding_has_words() -> None:
    """A row of its page would have a name of the core for a title."""
    facts = _facts()

    assert {"status", "own_use", "closed_at", "reserved", "counted", "booked_back_minor", "refused"} <= facts
    assert [] == sorted(facts - FACT_WORDS.keys() - WORDS.keys())


def test_nothing_is_taken_for_a_part_of_something_else() -> None:
    """What is excepted is never a fact with words, nor a name that nobody uses any more."""
    assert [] == sorted((OF_A_FINDING | OF_A_STATEMENT) & FACT_WORDS.keys())
