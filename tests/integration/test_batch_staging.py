"""An audience becomes distinct users in shards; what is wrong in it is told by its row (DESIGN 9)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as options
from sqlalchemy import text

from coupon_workers.campaigns.reservation import end_batch
from coupon_workers.campaigns.staging import stage_batch
from coupon_workers.campaigns.tag_tree import TagTree, has_user, is_bounded, negation, text_of
from coupon_workers.errors import NotFound
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.audience_reading import REASONS
from tests.support.audience_tags import TAG_SETS, trees
from tests.support.staging_batch import csv_of, parquet_of, shard_by_model, staged, waiting_batch

DISGUISED = b"\xef\xbb\xbfuser_id\r\n1001\r\n\r\n1002 \r\n1001\r\n4.68769E+17\r\n007\r\n"


def jsonl_of(users: list[str]) -> bytes:
    """A user a line, the first in line 1."""
    return "".join(json.dumps({"user_id": user}) + "\n" for user in users).encode()


def test_a_file_of_blank_lines_doubles_and_numbers_in_disguise(services: Services) -> None:
    """Every row is counted, and read or refused by its number (CASES 30)."""
    batch_id = waiting_batch(services, DISGUISED)

    status = stage_batch(services, batch_id)

    found = staged(services, batch_id)
    assert "ready" == status == found.status
    assert (5, 1, 1, 1, 3) == found.counts
    assert [(2, "1001"), (4, "1002"), (7, "007")] == found.users
    assert [
        (5, "1001", "DUPLICATE", "is in row 2 already"),
        (6, "4.68769E+17", "INVALID", REASONS["scientific"]),
    ] == found.failures
    assert (1, {0: 3}, 0) == (found.shard_count, found.shards, found.parts)


@pytest.mark.parametrize("part_bytes", [1, 7, 10_000])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_parts_and_newlines_do_not_show(services: Services, newline: str, part_bytes: int) -> None:
    """A part may end between the two halves of a newline, and within a character."""
    content = newline.join(["name,user_id", "Ann,u1", '"B, ""b""",会员', "", "Cat,u1", "Dan,u 4"]).encode()
    batch_id = waiting_batch(services, content, part_bytes=part_bytes)

    stage_batch(services, batch_id)

    found = staged(services, batch_id)
    assert (4, 1, 1, 1, 2) == found.counts
    assert [(2, "u1"), (3, "会员")] == found.users
    assert [(5, "u1", "DUPLICATE"), (6, "u 4", "INVALID")] == [failure[:3] for failure in found.failures]


@pytest.mark.parametrize("part_bytes", [100, 3_000, 1_000_000])
@pytest.mark.parametrize(
    ("name", "content", "first_row"),
    [
        ("users.csv", csv_of([f"u{n % 700}" for n in range(1_000)]), 2),
        ("users.jsonl", jsonl_of([f"u{n % 700}" for n in range(1_000)]), 1),
        ("users.parquet", parquet_of([f"u{n % 700}" for n in range(1_000)], row_group_size=300), 1),
    ],
)
def test_each_format_gives_the_same_audience(
    services: Services, name: str, content: bytes, first_row: int, part_bytes: int
) -> None:
    """Parquet is read from its end, whatever the parts."""
    batch_id = waiting_batch(services, content, name=name, part_bytes=part_bytes)

    stage_batch(services, batch_id)

    found = staged(services, batch_id)
    assert (1_000, 0, 0, 300, 700) == found.counts
    assert [(first_row + n, f"u{n}") for n in range(700)] == found.users
    assert (first_row + 700, "u0", "DUPLICATE", f"is in row {first_row} already") == found.failures[0]


def test_of_a_thousand_rows_with_three_equal_users_two_are_doubles(services: Services) -> None:
    """998 users are left to be issued to (CASES 31)."""
    users = [f"u{n}" if n not in (4, 500, 999) else "twin" for n in range(1_000)]
    batch_id = waiting_batch(services, csv_of(users))

    stage_batch(services, batch_id)

    found = staged(services, batch_id)
    assert ((1_000, 0, 0, 2, 998), {0: 998}) == (found.counts, found.shards)
    assert [(502, "twin"), (1_001, "twin")] == [failure[:2] for failure in found.failures]


def test_a_user_in_many_blocks_is_one(services: Services) -> None:
    """Each of his other rows is told of the first."""
    users = [f"u{n}" for n in range(30_000)]
    users[10], users[15_000], users[29_999] = "twin", "twin", "twin"
    batch_id = waiting_batch(services, csv_of(users))

    stage_batch(services, batch_id, shard_members=1_000)

    found = staged(services, batch_id)
    assert (30_000, 0, 0, 2, 29_998) == found.counts
    assert [(15_002, "twin", "DUPLICATE", "is in row 12 already"), (30_001, *found.failures[0][1:])] == found.failures
    assert 30 == found.shard_count


@pytest.mark.parametrize(
    ("cell", "reason"), [("a b", "space"), ("x" * 65, "long"), ("\u200b", "invisible"), ("1.5e3", "scientific")]
)
def test_a_bad_row_is_told_and_the_others_go_on(services: Services, cell: str, reason: str) -> None:
    """Its value is shortened, and printable."""
    batch_id = waiting_batch(services, csv_of(["ann", cell, "bob"]))

    stage_batch(services, batch_id)

    found = staged(services, batch_id)
    [(row_no, value, kind, detail)] = found.failures
    assert (3, "INVALID", REASONS[reason]) == (row_no, kind, detail)
    assert value.isprintable() and len(value) <= 65
    assert [(2, "ann"), (4, "bob")] == found.users


def test_signs_of_copy_are_characters_like_any_other(services: Services) -> None:
    r"""``\N`` is no NULL, ``\.`` ends nothing."""
    users = ["\\N", "\\.", "\\t", "');DROP--", "%s", "a\\"]
    batch_id = waiting_batch(services, csv_of(users) + b"\\ N\n")

    stage_batch(services, batch_id)

    found = staged(services, batch_id)
    assert users == [user_id for _, user_id in found.users]
    assert "\\ N" == found.failures[0][1]


@pytest.mark.parametrize(("members", "most", "shards"), [(10_000, 100, 1), (600, 100, 2), (1, 100, 100), (300, 3, 3)])
def test_users_are_spread_over_as_many_shards_as_it_takes(
    services: Services, members: int, most: int, shards: int
) -> None:
    """By a hash that any server computes alike; numbered from 1 in each, in the order of the file."""
    batch_id = waiting_batch(services, csv_of([f"用户{n}" for n in range(1_200)]))

    stage_batch(services, batch_id, shard_members=members, most_shards=most)

    found = staged(services, batch_id)
    assert shards == found.shard_count == len(found.shards)
    for shard, size in found.shards.items():
        mine = [member for member in found.members if member[0] == shard]
        assert list(range(1, size + 1)) == [number for _, number, _, _ in mine]
        assert sorted(row_no for *_, row_no in mine) == [row_no for *_, row_no in mine]
        assert {shard} == {shard_by_model(user_id, shards) for _, _, user_id, _ in mine}


def test_a_shard_without_users_is_none(services: Services) -> None:
    """It has no row, and does not count."""
    batch_id = waiting_batch(services, csv_of(["ann", "bob", "cat"]))

    stage_batch(services, batch_id, shard_members=1, most_shards=3)

    found = staged(services, batch_id)
    assert {shard_by_model(user_id, 3) for user_id in ("ann", "bob", "cat")} == set(found.shards)
    assert len(found.shards) == found.shard_count


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        (None, "users.csv", "EMPTY_FILE: is empty"),
        (b"id\n1\n", "users.csv", "COLUMN_MISSING: has no column user_id"),
        (csv_of([f"u{n}" for n in range(40_000)]) + b"\x00", "users.csv", "BINARY: is no text: it has a NUL"),
        (b'user_id\nann\n"bob', "users.csv", "TRUNCATED: ends within quotes"),
        (parquet_of(["ann", "bob"])[:-1], "users.parquet", "TRUNCATED: is a Parquet file without its end"),
        (b"user_id\n\n", "users.csv", "NO_USERS: names no user at all"),
    ],
)
def test_a_file_that_cannot_be_read_fails_the_batch(
    services: Services, content: bytes | None, name: str, reason: str
) -> None:
    """With its reason; what came before is void, and the file is not kept."""
    batch_id = waiting_batch(services, content, name=name)

    assert "failed" == stage_batch(services, batch_id)

    found = staged(services, batch_id)
    assert (found.reason or "").startswith(reason)
    assert ([], [], 0, (0, 0, 0, 0)) == (
        found.members,
        found.failures,
        found.parts,
        (*found.counts[:2], *found.counts[3:]),
    )


@pytest.mark.parametrize("junk", [b"\xff\xfe\x00junk" * 9_000, b"PK\x03\x04\x00\x00" * 9_000])
def test_a_file_whose_second_part_is_junk_leaves_nothing_of_the_first(services: Services, junk: bytes) -> None:
    """Members, failures and counts of it are void."""
    first = csv_of([f"u{n}" if n % 10 else "a b" for n in range(50_000)])
    batch_id = waiting_batch(services, first + junk, part_bytes=len(first))

    assert "failed" == stage_batch(services, batch_id)

    found = staged(services, batch_id)
    assert (found.reason or "").startswith(("ENCODING", "BINARY"))
    assert ((0, 0, 0, 0, 0), [], []) == (found.counts, found.members, found.failures)


def test_a_file_of_bad_rows_only_tells_them(services: Services) -> None:
    """It fails, and its failures may be read."""
    batch_id = waiting_batch(services, csv_of(["a b", "1e+5"]))

    assert "failed" == stage_batch(services, batch_id)

    found = staged(services, batch_id)
    assert ("NO_USERS: names no user at all", (2, 2, 0, 0, 0)) == (found.reason, found.counts)
    assert [2, 3] == [row_no for row_no, *_ in found.failures]


@pytest.mark.parametrize(("above", "needed"), [(None, False), (2, True), (3, False)])
def test_a_large_audience_needs_approval(services: Services, above: int | None, needed: bool) -> None:
    """Distinct users count, and only more than the setting."""
    settings = services.settings.model_copy(update={"batch_approval_above": above})
    batch_id = waiting_batch(services, DISGUISED)

    stage_batch(replace(services, settings=settings), batch_id)

    assert needed == staged(services, batch_id).needs_approval


@options(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trees())
def test_an_expression_names_whom_the_model_means(services: Services, tree: TagTree) -> None:
    """Each once, and in no row of a file."""
    bounded = tree if is_bounded(tree) else negation(tree)
    pairs = [{"user_id": str(n), "tag": tag} for n, tags in enumerate(TAG_SETS) for tag in tags]
    with services.engine.begin() as connection:
        connection.execute(text("INSERT INTO user_tag VALUES (:user_id, :tag) ON CONFLICT DO NOTHING"), pairs)
    batch_id = waiting_batch(services, tags=text_of(bounded))

    status = stage_batch(services, batch_id, shard_members=10)

    expected = {(0, str(n)) for n, tags in enumerate(TAG_SETS) if has_user(bounded, tags)}
    found = staged(services, batch_id)
    assert expected == set(found.users)
    assert (len(expected), 0, 0, 0, len(expected)) == found.counts
    assert ("ready" if expected else "failed") == status


@pytest.mark.parametrize(("tags", "reason"), [("nobody", "NO_USERS"), ("not a", "TAGS"), ("a and", "TAGS")])
def test_tags_that_name_nobody_fail_the_batch(services: Services, tags: str, reason: str) -> None:
    """And so does an expression that cannot be read any more."""
    batch_id = waiting_batch(services, tags=tags)

    assert "failed" == stage_batch(services, batch_id)

    assert (staged(services, batch_id).reason or "").startswith(f"{reason}: ")


def test_staging_again_does_nothing(services: Services) -> None:
    """A message may come twice, and after the batch has run."""
    batch_id = waiting_batch(services, DISGUISED)
    stage_batch(services, batch_id)
    before = staged(services, batch_id)

    assert "ready" == stage_batch(services, batch_id)

    assert before == staged(services, batch_id)


def test_a_batch_that_was_cancelled_is_left_alone(services: Services) -> None:
    """Nothing is staged for it."""
    batch_id = waiting_batch(services, DISGUISED)
    cancel(services, batch_id)

    assert "cancelled" == stage_batch(services, batch_id)

    assert ("cancelled", []) == (staged(services, batch_id).status, staged(services, batch_id).members)


@pytest.mark.parametrize("name", ["users.csv", "users.parquet"])
def test_a_batch_that_is_cancelled_while_its_file_is_read(
    services: Services, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The parts go with it; what was staged so far is void."""
    users = [f"u{n}" for n in range(60_000)]
    content = csv_of(users) if name == "users.csv" else parquet_of([*users], row_group_size=10_000)
    batch_id = waiting_batch(services, content, name=name, part_bytes=20_000)

    status = stage_batch(cancelling(services, batch_id, monkeypatch), batch_id)

    found = staged(services, batch_id)
    assert ("cancelled", [], 0, 0) == (status, found.members, found.counts[0], found.parts)


def test_a_batch_that_is_not_there(services: Services) -> None:
    """Whoever sent the message is told."""
    with pytest.raises(NotFound) as refused:
        stage_batch(services, 7)

    assert "BATCH_NOT_FOUND" == refused.value.code


def cancel(services: Services, batch_id: int) -> None:
    """End it, as whoever cancels it does."""
    with services.engine.begin() as connection:
        end_batch(connection, batch_id, "cancelled", None, utc_now())


def cancelling(services: Services, batch_id: int, monkeypatch: pytest.MonkeyPatch) -> Services:
    """Services with which somebody cancels the batch after its first block."""
    from coupon_workers.campaigns import staging

    copy_in, blocks = staging.copy_in, iter(range(10**6))

    def copy_and_cancel(*arguments: Any) -> None:
        copy_in(*arguments)
        if next(blocks) == 0:
            cancel(services, batch_id)

    monkeypatch.setattr(staging, "copy_in", copy_and_cancel)
    return services
