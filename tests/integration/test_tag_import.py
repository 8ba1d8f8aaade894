"""Users' tags: a file of pairs is added, and a user's own are replaced."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from coupon_workers.campaigns import tag_import
from coupon_workers.campaigns.audience_batch import InvalidRow
from coupon_workers.campaigns.staging import stage_batch
from coupon_workers.campaigns.tag_import import TagCount, import_tags, put_tags, read_tags
from coupon_workers.campaigns.tag_rows import BAD_TAG
from coupon_workers.campaigns.tag_tree import Tag, text_of
from coupon_workers.errors import AudienceFileError, InvalidInput
from coupon_workers.runtime.services import Services
from tests.support.audience_reading import REASONS
from tests.support.staging_batch import staged, waiting_batch

CRASHED = RuntimeError("the worker died")


def imported(services: Services, content: str | bytes) -> TagCount:
    """Import a file."""
    return import_tags(services, io.BytesIO(content.encode() if isinstance(content, str) else content))


def pairs(services: Services) -> set[tuple[str, str]]:
    """Every user with every tag."""
    with services.engine.connect() as connection:
        return {tuple(row) for row in connection.execute(text("SELECT user_id, tag FROM user_tag"))}


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("header", ["user_id,tag", "tag,name,user_id", '\ufeff USER_ID ,"Tag"'])
def test_columns_are_found_by_their_names(services: Services, header: str, newline: str) -> None:
    """In any order, beside others, below blank rows, whatever the newline."""
    names = [name.strip('\ufeff" ').lower() for name in header.split(",")]
    rows = [{"user_id": " ann ", "tag": "vip", "name": "A"}, {"user_id": "007", "tag": '"x, ""y"""', "name": ""}]
    lines = [header, *(",".join(row[name] for name in names) for row in rows), "", ""]

    count = imported(services, newline.join(lines))

    assert {("ann", "vip"), ("007", 'x, "y"')} == pairs(services)
    assert TagCount(rows=2, added=2, invalid=0, blank=1) == count


def test_what_is_there_is_not_added_again(services: Services) -> None:
    """Nor is a pair that the file has twice."""
    imported(services, "user_id,tag\nann,vip\n")

    count = imported(services, "user_id,tag\nann,vip\nbob,vip\nbob,vip\n")

    assert TagCount(rows=3, added=1, invalid=0, blank=0) == count
    assert {("ann", "vip"), ("bob", "vip")} == pairs(services)


def test_bad_rows_are_left_out_and_named(services: Services) -> None:
    """By their numbers in a spreadsheet; the others are added."""
    bad = ["a b,vip", "ann,", "1E+5,vip", ",vip", f"ann,{'x' * 65}", "ann,a\u200bb", "bob"]

    count = imported(services, "\n".join(["user_id,tag", "ann,vip", "", *bad, "cat,vip"]))

    assert {("ann", "vip"), ("cat", "vip")} == pairs(services)
    assert (9, 2, 7, 1) == (count.rows, count.added, count.invalid, count.blank)
    assert [
        InvalidRow(4, "a b", REASONS["space"]),
        InvalidRow(5, "", BAD_TAG),
        InvalidRow(6, "1E+5", REASONS["scientific"]),
        InvalidRow(7, "", REASONS["empty"]),
    ] == list(count.named[:4])


def test_the_first_bad_rows_are_named_and_the_others_counted(services: Services) -> None:
    """A file of them is no list in memory, and one row may be as long as a file."""
    content = "user_id,tag\n" + "a b,vip\n" * 40_000 + "ann," + "x" * 3_000_000 + "\n"

    count = imported(services, content)

    assert (40_001, 40_001) == (count.rows, count.invalid)
    assert list(range(2, 12)) == [row.row_no for row in count.named]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "EMPTY_FILE"),
        (b"\n\n", "EMPTY_FILE"),
        (b"user_id,name\nann,vip\n", "COLUMN_MISSING"),
        (b"tag\nvip\n", "COLUMN_MISSING"),
        (b"user_id,tag,Tag\nann,vip,vip\n", "COLUMN_AMBIGUOUS"),
        (b'user_id,tag\nann,"vip', "TRUNCATED"),
        (b"user_id,tag\n" + b"ann,vip\n" * 50_000 + b"\x00", "BINARY"),
        (b"user_id,tag," + b"x" * 2_000_000 + b"\n", "HEADER_MISSING"),
    ],
)
def test_a_file_that_cannot_be_read_adds_nothing(services: Services, content: bytes, code: str) -> None:
    """Not even the rows that came before."""
    with pytest.raises(AudienceFileError) as refused:
        imported(services, content)

    assert (code, set()) == (refused.value.code, pairs(services))


def test_an_import_that_breaks_off_adds_nothing(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one transaction, and may be run again."""
    content = "user_id,tag\n" + "".join(f"u{n},vip\n" for n in range(60_000))
    copy_in, blocks = tag_import.copy_in, iter(range(10**6))

    def die(*arguments: object) -> None:
        if next(blocks) == 2:
            raise CRASHED
        copy_in(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(tag_import, "copy_in", die)
        imported(services, content)
    left = pairs(services)

    assert (set(), 60_000) == (left, imported(services, content).added)


def test_every_tag_that_is_taken_can_be_named_by_an_expression(services: Services) -> None:
    """Quotes, keywords, signs and scripts."""
    tags = ["and", "a b", 'q"t', "会员", "(x)", "\\N", "%s", ":x", "x" * 64]

    for tag in put_tags(services, "ann", tags):
        batch_id = waiting_batch(services, tags=text_of(Tag(tag)))
        stage_batch(services, batch_id)
        assert [(0, "ann")] == staged(services, batch_id).users


def test_a_users_tags_are_replaced(services: Services) -> None:
    """They come back sorted, each once; other users keep theirs."""
    put_tags(services, "ann", ["vip", "new"])
    put_tags(services, "bob", ["vip"])

    answer = put_tags(services, "ann", ["vip", "old", "vip", "Z"])

    assert ["Z", "old", "vip"] == answer == read_tags(services, "ann")
    assert ["vip"] == read_tags(services, "bob")
    assert [] == put_tags(services, "ann", []) == read_tags(services, "ann") == read_tags(services, "nobody")


@pytest.mark.parametrize("tag", ["", " vip", "x" * 65, "a\nb", "\ud800", "a\x00"])
def test_a_tag_that_no_expression_can_name_is_refused(services: Services, tag: str) -> None:
    """Nothing is written then."""
    put_tags(services, "ann", ["vip"])

    with pytest.raises(InvalidInput) as refused:
        put_tags(services, "ann", ["new", tag])

    assert ["tags"] == [field for field, _ in refused.value.errors]
    assert ["vip"] == read_tags(services, "ann")


@pytest.mark.parametrize("user_id", ["", "a b", "a\x00", "x" * 65])
def test_a_user_that_cannot_be_is_refused(services: Services, user_id: str) -> None:
    """Before PostgreSQL hears of him."""
    with pytest.raises(InvalidInput):
        put_tags(services, user_id, ["vip"])
    with pytest.raises(InvalidInput):
        read_tags(services, user_id)


def test_no_more_tags_than_a_request_may_have(services: Services) -> None:
    """A thousand."""
    assert 1_000 == len(put_tags(services, "ann", [f"t{n}" for n in range(1_000)]))
    with pytest.raises(InvalidInput):
        put_tags(services, "ann", [f"t{n}" for n in range(1_001)])


def test_those_who_write_the_same_tags_at_once_do_not_mix(services: Services) -> None:
    """One of the requests has the last word on all of a user's tags; imports wait, and nobody deadlocks."""
    sets = [[f"{letter}{n}" for n in range(20)] for letter in "abcd"]
    file = "user_id,tag\n" + "".join(f"bob,{tag}\n" for tags in reversed(sets) for tag in reversed(tags))

    with ThreadPoolExecutor(6) as pool:
        puts = [pool.submit(put_tags, services, "ann", tags) for tags in sets * 5]
        imports = [pool.submit(imported, services, file) for _ in range(6)]
        others = [pool.submit(put_tags, services, "bob", tags) for tags in sets]
        for each in (*puts, *imports, *others):
            each.result()

    assert read_tags(services, "ann") in [sorted(tags) for tags in sets]
