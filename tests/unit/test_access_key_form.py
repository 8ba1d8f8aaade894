"""What has not the form of a key is refused without asking anybody."""

from __future__ import annotations

import pytest

from coupon_workers.access.api_key import key_id_of

SECRET = "A" * 43


def test_a_key_names_its_id() -> None:
    """The id is the part between the underscores."""
    assert "0123456789abcdef" == key_id_of(f"cw_0123456789abcdef_{SECRET}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cw_",
        f"cw_0123456789abcde_{SECRET}",
        f"cw_0123456789ABCDEF_{SECRET}",
        f"cw_0123456789abcdef_{SECRET}A",
        f"cw_0123456789abcdef_{SECRET[:-1]}",
        f"cw_0123456789abcdef_{SECRET[:-1]}\n",
        f"cw_0123456789abcdef_{SECRET[:-1]}é",
        f"cw_٠123456789abcdef_{SECRET}",
        f" cw_0123456789abcdef_{SECRET}",
    ],
)
def test_another_text_names_none(text: str) -> None:
    """Neither short nor long, neither padded nor in other letters."""
    assert key_id_of(text) is None
