"""Expressions over tags as PostgreSQL reads them: the same users as the small model means."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from sqlalchemy import Connection, Engine, text

from coupon_workers.campaigns.tag_expression import MAX_DEPTH, read_tag_expression
from coupon_workers.campaigns.tag_sql import users_with
from coupon_workers.campaigns.tag_tree import TagTree, has_user, is_bounded, negation
from tests.support.audience_tags import TAG_SETS, trees


@pytest.fixture(scope="module")
def tagged(migrated_engine: Engine) -> Iterator[Connection]:
    """Users with every set of tags there is, each named by the number of his set."""
    with migrated_engine.connect() as connection:
        connection.execute(text("CREATE TEMPORARY TABLE user_tag (user_id text, tag text, PRIMARY KEY (user_id, tag))"))
        rows = [{"user_id": str(number), "tag": tag} for number, tags in enumerate(TAG_SETS) for tag in tags]
        connection.execute(text("INSERT INTO user_tag VALUES (:user_id, :tag)"), rows)
        yield connection
        connection.rollback()


@settings(max_examples=150)
@given(trees())
def test_sql_finds_whom_the_model_means(tagged: Connection, tree: TagTree) -> None:
    """Each once."""
    bounded = tree if is_bounded(tree) else negation(tree)

    found = tagged.scalars(users_with(bounded)).all()

    assert [str(number) for number, tags in enumerate(TAG_SETS) if has_user(bounded, tags)] == sorted(found, key=int)


def test_a_tag_is_a_parameter_and_never_sql(tagged: Connection) -> None:
    """Whatever is written in it."""
    query = users_with(read_tag_expression('a and not "\'; DROP TABLE user_tag; --"'))

    assert "DROP" not in str(query)
    assert 32 == len(tagged.scalars(query).all())


def test_the_deepest_expression_is_one_statement(tagged: Connection) -> None:
    """Neither SQLAlchemy nor PostgreSQL runs out of stack."""
    deep = "a"
    for number in range(MAX_DEPTH):
        deep = f"b or ({deep} and x{number})" if number % 2 else f"a and ({deep} or b)"

    tree = read_tag_expression(deep)

    expected = sum(has_user(tree, tags) for tags in TAG_SETS)
    assert expected == len(tagged.scalars(users_with(tree)).all())


def test_an_unbounded_tree_is_a_mistake_of_the_caller() -> None:
    """Reading an expression refuses it before."""
    with pytest.raises(ValueError, match="without any tag"):
        users_with(negation(read_tag_expression("a")))
