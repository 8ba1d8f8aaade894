"""Expressions over tags: what is meant, how it is written, and where it goes wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coupon_workers.campaigns.tag_expression import (
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_TAGS,
    TagExpressionError,
    read_tag_expression,
)
from coupon_workers.campaigns.tag_tree import TagTree, all_of, any_of, has_user, is_bounded, negation, text_of
from coupon_workers.errors import InvalidInput
from tests.support.audience_tags import NAMES, TAG_SETS, noise, python_of, trees


@pytest.mark.parametrize(
    ("text", "meant", "not_meant"),
    [
        ("vip", ["vip", "vip x"], ["", "x", "VIP"]),
        ("vip and not churned", ["vip", "vip x"], ["", "churned", "vip churned"]),
        ("a or b and c", ["a", "b c"], ["b", "c"]),
        ("(a or b) and c", ["a c", "b c"], ["a", "a b", "c"]),
        ("a and not b or c", ["a", "b c"], ["a b", "b"]),
        ("not b and a", ["a"], ["a b", ""]),
        ("not (not a or b)", ["a"], ["a b", "b", ""]),
        ("a AND NOT(b)Or\tc", ["a", "c"], ["a b"]),
        ("not not a", ["a"], [""]),
        ("会员:2026.v-1 and a_b", ["会员:2026.v-1 a_b"], ["a_b"]),
        ('"and" or "not"', ["and", "not"], ["or"]),
    ],
)
def test_an_expression_means_users_by_their_tags(text: str, meant: list[str], not_meant: list[str]) -> None:
    """Not binds more than and, and more than or."""
    tree = read_tag_expression(text)

    assert meant == [tags for tags in meant + not_meant if has_user(tree, tags.split())]


def test_any_text_is_a_tag_in_quotes() -> None:
    """Two quotes within stand for one."""
    tree = read_tag_expression('"new in \'26" and "5"" (or so)"')

    assert has_user(tree, ["new in '26", '5" (or so)'])
    assert '"new in \'26" and "5"" (or so)"' == text_of(tree)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("((a))", "a"),
        ("a and (b and c)", "a and b and c"),
        ("(a or b) or c", "a or b or c"),
        ("a or (b and c)", "a or b and c"),
        ("(a or b) and not(not(c))", "(a or b) and c"),
        ("a and not (b and c)", "a and not (b and c)"),
        ('"a"   AND "a b"', 'a and "a b"'),
    ],
)
def test_the_canonical_text_says_no_more_than_needed(text: str, canonical: str) -> None:
    """One way for each tree."""
    assert canonical == text_of(read_tag_expression(text))


@given(trees().filter(is_bounded))
def test_a_tree_is_read_back_from_its_text(tree: TagTree) -> None:
    """As itself."""
    assert tree == read_tag_expression(text_of(tree))


@given(trees(), st.data())
def test_noise_changes_nothing(tree: TagTree, data: st.DataObject) -> None:
    """Blanks, case, quotes and parentheses that are not needed: a tag in front makes every tree bounded."""
    whole = all_of([read_tag_expression(NAMES[0]), tree])

    text = noise(text_of(whole), data.draw)

    assert whole == read_tag_expression(text)


@given(trees(), st.sets(st.sampled_from(NAMES)))
def test_a_tree_means_what_python_means_by_it(tree: TagTree, tags: set[str]) -> None:
    """Whose operators bind alike."""
    assert eval(python_of(text_of(tree)), {"tags": tags}) == has_user(tree, tags)


@given(trees(), trees(), st.sets(st.sampled_from(NAMES)))
def test_putting_trees_together_keeps_their_meaning(one: TagTree, other: TagTree, tags: set[str]) -> None:
    """Though their form may change."""
    first, second = has_user(one, tags), has_user(other, tags)

    assert (first and second) == has_user(all_of([one, other]), tags)
    assert (first or second) == has_user(any_of([one, other]), tags)
    assert first != has_user(negation(one), tags)


@given(trees())
def test_a_bounded_tree_means_nobody_without_tags(tree: TagTree) -> None:
    """And the other way round: whether it is bounded is known from nothing else."""
    assert is_bounded(tree) != has_user(tree, ())


@pytest.mark.parametrize("text", ["not churned", "a or not b", "not a and not b", "not (a and b)", "a or (b or not c)"])
def test_users_without_a_tag_are_not_looked_for(text: str) -> None:
    """Nobody keeps a list of all users."""
    with pytest.raises(TagExpressionError, match="means users without any tag, too"):
        read_tag_expression(text)


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 1, 'expected a tag, "not" or "(", found the end'),
        ("  ", 3, "found the end"),
        ("a b", 3, 'expected "and", "or" or the end, found "b"'),
        ("a and", 6, "found the end"),
        ("a and or b", 7, 'found "or"'),
        ("and", 1, 'found "and"'),
        ("a && b", 3, "'&' is not of an expression"),
        ("（a）", 1, "'（' is not of an expression"),
        ("a; drop table user_tag", 2, "';' is not of an expression"),
        ('a or "b', 6, "the quotes are never closed"),
        ('a or ""', 6, "a tag must have 1 to 64 printable characters"),
        ('"a\nb"', 1, "a tag must have 1 to 64 printable characters"),
        ("a or " + "x" * 65, 6, "a tag must have 1 to 64 printable characters"),
        ("(a or b", 8, 'the ")" of the "(" at 1'),
        ("a)", 2, 'found ")"'),
        ("()", 2, 'found ")"'),
        ("a not b", 3, 'found "not"'),
        ("(" * 10_000 + "a" + ")" * 4_000, MAX_DEPTH + 1, "more than 32 deep"),
        ("not " * 4_000 + "a", 4 * MAX_DEPTH + 1, "more than 32 deep"),
        ("(" * 10_000, MAX_DEPTH + 1, "more than 32 deep"),
        ("a" * 20_000, MAX_LENGTH + 1, "more than 16384 characters"),
        ("a or " * 100 + "a", 501, "more than 100 tags"),
        ("a\0", 2, "is not of an expression"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, position: int, message: str) -> None:
    """Characters are counted from 1."""
    with pytest.raises(TagExpressionError) as refusal:
        read_tag_expression(text)

    assert position == refusal.value.position
    assert message in str(refusal.value)
    assert 300 > len(str(refusal.value))


@given(
    st.text(max_size=40) | st.lists(st.sampled_from(["a", "and", "or", "not", "(", ")", '"', " ", "é"])).map("".join)
)
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing else comes out of it."""
    try:
        tree = read_tag_expression(text)
    except InvalidInput as error:
        assert ["tags"] == [field for field, _ in error.errors]
    else:
        assert tree == read_tag_expression(text_of(tree))


def test_depth_is_not_counted_side_by_side() -> None:
    """Parentheses that are closed nest nothing."""
    text = " and ".join(["(not b or c)"] * 49 + ["a"])

    assert has_user(read_tag_expression(text), ["a"])


def test_the_largest_expression_is_read() -> None:
    """As deep and with as many tags as may be."""
    deep = "a"
    for number in range(MAX_DEPTH):
        deep = f"b{number} or (c{number} and {deep})" if number % 2 else f"b{number} and (c{number} or {deep})"
    deep = " or ".join([deep, *(f"t{number}" for number in range(MAX_TAGS - 2 * MAX_DEPTH - 1))])

    tree = read_tag_expression(deep)

    assert tree == read_tag_expression(text_of(tree))
    assert {True, False} == {has_user(tree, tags) for tags in (*TAG_SETS, ["t1"])}
