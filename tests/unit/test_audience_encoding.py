"""The bytes of an audience's text: UTF-8 and GBK are read, anything else is named and refused."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from coupon_workers.campaigns.audience import Audience
from coupon_workers.campaigns.audience_text import BLOCK_BYTES, AudienceText
from coupon_workers.errors import AudienceFileError
from tests.support.audience_reading import gather, read_whole

CHINESE = "user_id,姓名,城市\n1001,张三,北京\n1002,李四,上海\n"


@pytest.mark.parametrize(
    "text",
    [
        CHINESE,
        "姓名,user_id\n张三,1001\n李四,1002\n",
        "user_id,a\n1001,中\n1002,\n",
        "user_id,姓名\n" + "".join(f"{number},王小明\n" for number in range(1001, 3000)),
    ],
)
@pytest.mark.parametrize("encoding", ["gbk", "utf-8", "utf-8-sig"])
def test_utf_8_and_gbk_give_the_same_users(text: str, encoding: str) -> None:
    """However few of its characters tell."""
    assert read_whole(text.encode("utf-8")) == read_whole(text.encode(encoding))


def test_gbk_is_found_where_it_begins() -> None:
    """Blocks of ASCII before it say nothing against it."""
    rows = "".join(f"{number},Li\n" for number in range(100_000, 100_000 + BLOCK_BYTES // 5))
    audience = Audience(io.BytesIO(f"user_id,name\n{rows}7,李四\n会员,x\n".encode("gbk")))

    read = gather(audience)

    assert ["7", "会员"] == [row.user_id for row in read.valid[-2:]]
    assert "gb18030" == audience.encoding


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
def test_a_character_may_lie_across_blocks(encoding: str) -> None:
    """Whatever its bytes are."""
    content = "user_id\n会员一\n会员二\n".encode(encoding)

    for at in range(1, len(content)):
        pieces: Iterator[bytes] = iter((content[:at], content[at:]))

        assert content.decode(encoding) == "".join(AudienceText(pieces))


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
def test_the_first_character_that_tells_may_be_cut_by_a_block(encoding: str) -> None:
    """Then the next block tells."""
    for before in range(BLOCK_BYTES - 10, BLOCK_BYTES):
        rows = "user_id\n" + "1" * 60 + "\n" * (before - 68) + "会员一\n会员二\n"

        assert ["会员一", "会员二"] == [row.user_id for row in read_whole(rows.encode(encoding)).valid[1:]]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_utf_16_is_refused_by_name(encoding: str) -> None:
    """With or without its mark."""
    refusal = refusal_of("user_id\n1001\n1002\n".encode(encoding))

    assert "ENCODING" == refusal.code
    assert "UTF-16" in str(refusal)
    assert "save it as UTF-8" in str(refusal)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("user_id,name\n1001,José\n1002,Müller\n1003,élan\n", "cp1252"),
        ("user_id,名前\n1001,やまだ\n1002,すずき\n", "shift_jis"),
        ("user_id,имя\n1001,Иван\n1002,Мария\n", "cp1251"),
        ("user_id,이름\n1001,김철수\n1002,이영희\n", "euc_kr"),
        ("user_id,姓名\n1001,張三豐\n1002,諸葛亮\n1003,歐陽鋒\n", "big5"),
    ],
)
def test_another_encoding_is_refused_with_its_place(text: str, encoding: str) -> None:
    """Nothing is guessed at."""
    refusal = refusal_of(text.encode(encoding))

    assert "ENCODING" == refusal.code
    assert "is not UTF-8" in str(refusal)
    assert "byte 9 of the file" in str(refusal) or "line 2, byte 22 of the file" in str(refusal)


def test_a_bad_byte_is_told_by_line_and_byte() -> None:
    """In a later block, too."""
    good = "会员\n".encode()
    many = BLOCK_BYTES // len(good) + 10
    refusal = refusal_of(b"user_id\n" + good * many + b"\xff\n")

    assert "ENCODING" == refusal.code
    assert f"line {many + 2}, byte {8 + len(good) * many + 1} of the file" in str(refusal)


def test_a_mark_of_utf_8_is_a_promise() -> None:
    """What comes after it is not taken for GBK."""
    assert "ENCODING" == refusal_of(b"\xef\xbb\xbf" + CHINESE.encode("gbk")).code


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
def test_half_a_character_at_the_end_is_a_truncated_file(encoding: str) -> None:
    """It is what a broken upload leaves."""
    whole = (CHINESE * 20).encode(encoding) + "会".encode(encoding)

    assert "TRUNCATED" == refusal_of(whole[:-1]).code


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"user_id\n1001\n10\x0002\n", "it has a NUL at line 3, byte 16 of the file"),
        (b"PK\x03\x04\x14\x00\x06\x00", "Excel"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Excel"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"\x28\xb5\x2f\xfd\x04", "zstd"),
    ],
)
def test_what_is_no_text_is_refused(content: bytes, message: str) -> None:
    """A workbook is told from junk, for people to save it anew."""
    refusal = refusal_of(content)

    assert "BINARY" == refusal.code
    assert message in str(refusal)


def refusal_of(content: bytes) -> AudienceFileError:
    """Why a CSV file is not read."""
    with pytest.raises(AudienceFileError) as refusal:
        read_whole(content)
    return refusal.value
