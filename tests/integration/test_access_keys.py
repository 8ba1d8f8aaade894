"""API keys in the database: what is kept, what is shown, what opens."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from coupon_workers.access.api_key import create_key, list_keys, revoke_key, verify_key
from coupon_workers.access.key_name import KeyNames
from coupon_workers.errors import InvalidInput, NotFound


def test_a_key_opens_with_the_scopes_it_was_made_for(engine: Engine) -> None:
    """The caller is known by the key's record."""
    made = create_key(engine, name="storefront of the app", scopes=["storefront", "orders", "storefront"])

    caller = verify_key(engine, made.key)

    assert caller is not None
    assert (made.record.key_id, "storefront of the app") == (caller.key_id, caller.name)
    assert frozenset({"storefront", "orders"}) == caller.scopes
    assert ("storefront", "orders") == made.record.scopes


def test_the_database_holds_nothing_that_opens(engine: Engine) -> None:
    """Whoever reads the table, whole, cannot call us."""
    made = create_key(engine, name="n", scopes=["ops"])
    with engine.connect() as connection:
        row = connection.execute(text("SELECT api_key::text, encode(key_hash, 'hex') FROM api_key")).one()

    secret = made.key.rsplit("_", 1)[1] if made.key.count("_") == 2 else made.key[20:]

    assert secret not in row[0]
    assert verify_key(engine, f"cw_{made.record.key_id}_{row[1][:43]}") is None


def test_two_keys_never_share_a_secret(engine: Engine) -> None:
    """43 characters hold 256 random bits."""
    keys = {create_key(engine, name="n", scopes=["ops"]).key for _ in range(20)}

    assert 20 == len({key[20:] for key in keys})
    assert {43} == {len(key[20:]) for key in keys}


def test_a_revoked_key_opens_nothing(engine: Engine) -> None:
    """Revoking again changes nothing, not even the instant."""
    made = create_key(engine, name="n", scopes=["ops"])

    first = revoke_key(engine, made.record.key_id)
    second = revoke_key(engine, made.record.key_id)

    assert verify_key(engine, made.key) is None
    assert first.revoked_at is not None
    assert first == second


def test_a_key_that_does_not_exist_cannot_be_revoked(engine: Engine) -> None:
    """It is not found."""
    with pytest.raises(NotFound) as refusal:
        revoke_key(engine, "0123456789abcdef")

    assert "API_KEY_NOT_FOUND" == refusal.value.code


@pytest.mark.parametrize(
    ("name", "scopes", "fields"),
    [
        ("", ["ops"], {"name"}),
        (" ", ["ops"], {"name"}),
        ("a\nb", ["ops"], {"name"}),
        ("x" * 101, ["ops"], {"name"}),
        ("n", [], {"scopes"}),
        ("n", ["ops", "root"], {"scopes"}),
        ("", ["root"], {"name", "scopes"}),
    ],
)
def test_a_key_without_a_name_or_a_known_scope_is_not_made(
    engine: Engine, name: str, scopes: list[str], fields: set[str]
) -> None:
    """Every field that is wrong is named at once."""
    with pytest.raises(InvalidInput) as refusal:
        create_key(engine, name=name, scopes=scopes)

    assert fields == {field for field, _ in refusal.value.errors}


def test_keys_are_listed_newest_first_and_in_pages(engine: Engine) -> None:
    """A page goes on after the last key of the page before."""
    made = [create_key(engine, name=f"n{number}", scopes=["ops"]).record for number in range(5)]

    first = list_keys(engine, limit=2)
    second = list_keys(engine, limit=10, before=(first[-1].created_at, first[-1].key_id))

    assert list(reversed(made)) == [*first, *second]


def test_the_name_of_a_key_is_asked_for_once(engine: Engine) -> None:
    """A revoked one's too; whatever else acts has none, and of an unknown key nothing is remembered."""
    key_id = create_key(engine, name="warehouse", scopes=["admin"]).record.key_id
    later_id = "0123456789abcdef"
    revoke_key(engine, key_id)
    names = KeyNames(engine)

    first = [names.name_of(operator) for operator in (key_id, later_id, "command line", "")]
    create_key(engine, name="later", scopes=["admin"], key_id=later_id)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM api_key WHERE key_id = :key_id"), {"key_id": key_id})

    assert ["warehouse", None, None, None] == first
    assert ("warehouse", "later") == (names.name_of(key_id), names.name_of(later_id))
