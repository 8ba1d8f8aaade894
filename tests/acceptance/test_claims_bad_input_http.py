"""What is no claim is refused precisely, never with a 500, and changes nothing in any store."""

from __future__ import annotations

import json
import time

import pytest

from tests.support.http_bad_claim import BAD_CLAIMS, TEMPLATE, WRONG_SHAPES, WRONG_VALUES, Bad
from tests.support.http_caller import claim_of
from tests.support.http_shop import Holdings, Shop


@pytest.fixture(scope="module")
def template_id(lasting_shop: Shop) -> str:
    """A template that can be claimed."""
    return lasting_shop.desk.open()


@pytest.fixture(scope="module")
def untouched(lasting_shop: Shop, template_id: str) -> Holdings:
    """All that the stores hold before anything is claimed."""
    return lasting_shop.holdings()


@pytest.mark.parametrize("bad", BAD_CLAIMS, ids=lambda bad: bad.name)
def test_what_is_no_claim_is_refused_by_name(
    lasting_shop: Shop, template_id: str, untouched: Holdings, bad: Bad
) -> None:
    """Every wrong field is named; the stores are as they were."""
    reply = lasting_shop.front.ask("POST", "/v1/claims", bad.spelt(template_id), Content_Type=bad.content_type)

    problem = reply.problem(bad.status, bad.code)
    assert set(bad.fields) <= {error["field"] for error in problem["errors"]}
    if len(bad.fields) == 1:
        assert list(bad.fields) == sorted({error["field"] for error in problem["errors"]})
    assert untouched == lasting_shop.holdings()


@pytest.mark.parametrize("bad", [*WRONG_VALUES[::5], *WRONG_SHAPES[:8]], ids=lambda bad: bad.name)
def test_a_wrong_claim_in_a_batch_is_named_by_its_place(
    lasting_shop: Shop, template_id: str, untouched: Holdings, bad: Bad
) -> None:
    """And takes the whole batch with it: nothing of it is claimed."""
    assert isinstance(bad.body, dict)
    batch = {"claims": [claim_of(TEMPLATE, "bob"), bad.body, claim_of(TEMPLATE, "eve")]}
    body = json.dumps(batch).replace(TEMPLATE, template_id).encode()

    reply = lasting_shop.front.ask("POST", "/v1/claims/batch", body)

    assert [f"claims.1.{field}".rstrip(".") for field in sorted(bad.fields)] == reply.bad_fields()
    assert untouched == lasting_shop.holdings()


def test_nobody_claims_without_the_right_key(lasting_shop: Shop, template_id: str) -> None:
    """No key, a wrong one, one of another scope: told before the body is looked at, and nothing is taken."""
    nobody, wrong = lasting_shop.caller(), lasting_shop.caller()
    wrong._headers = {"Authorization": f"Bearer cw_0123456789abcdef_{'A' * 43}"}
    others = lasting_shop.caller("admin", "orders", "ops")
    before = lasting_shop.holdings()

    for path, body in (("/v1/claims", claim_of(template_id, "ann")), ("/v1/claims", b"{"), ("/v1/claims/batch", b"")):
        nobody.ask("POST", path, body).problem(401, "UNAUTHENTICATED")
        wrong.ask("POST", path, body).problem(401, "INVALID_KEY")
        assert ["storefront"] == others.ask("POST", path, body).problem(403, "FORBIDDEN")["scopes"]

    assert before == lasting_shop.holdings()


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_a_claim_is_made_by_post_alone(lasting_shop: Shop, template_id: str, method: str) -> None:
    """405 with the methods that there are; reading a claim "batch" finds none."""
    reply = lasting_shop.front.ask(method, "/v1/claims", claim_of(template_id, "ann"))
    batch = lasting_shop.front.ask(method, "/v1/claims/batch", {"claims": [claim_of(template_id, "ann")]})

    reply.problem(405, "METHOD_NOT_ALLOWED")
    assert "POST" in reply.headers["allow"].split(", ")
    batch.problem(*((404, "CLAIM_NOT_FOUND") if method == "GET" else (405, "METHOD_NOT_ALLOWED")))


def test_other_addresses_are_not_taken_for_claims(lasting_shop: Shop, template_id: str) -> None:
    """No redirect, which would lose the body."""
    for path in ("/v1/claims/", "//v1/claims", "/v1//claims", "/V1/claims", "/v1/claims/batch/", "/v1/claims;x=1"):
        lasting_shop.front.ask("POST", path, claim_of(template_id, "ann")).problem(404, "NOT_FOUND")


def test_a_body_is_a_claim_whatever_the_query_says(lasting_shop: Shop) -> None:
    """The query of a POST is not read."""
    reply = lasting_shop.front.ask("POST", "/v1/claims?template_id=1&user_id=%00", {"user_id": "ann"})

    assert 422 == reply.status
    assert {error["field"] for error in reply.any_problem()["errors"]} <= {"query", "request_id", "template_id"}


@pytest.mark.parametrize(
    "claim_id",
    ["1", "0", "-1", "+1", "1.0", "1e3", "0x10", "007", "abc", "%20", "1%20", "9223372036854775807",
     "9223372036854775808", "18446744073709551617", "9" * 40, "9" * 5_000, "٣", "%D9%A3", "null", "batch%2F1"],
)  # fmt: skip
def test_a_claim_nobody_was_given_is_not_found(lasting_shop: Shop, claim_id: str) -> None:
    """Whatever the text is, and without a wait for what will never come."""
    began_s = time.monotonic()

    reply = lasting_shop.front.read_claim(claim_id, wait_s=5)

    assert 404 == reply.status
    assert reply.any_problem()["code"] in {"CLAIM_NOT_FOUND"} | ({"NOT_FOUND"} if "%2F" in claim_id else set())
    assert time.monotonic() - began_s < 4


@pytest.mark.parametrize("wait", ["-1", "10.1", "x", "NaN", "inf", "1e9", "", "1&wait=2", "1&colour=red"])
def test_a_wait_that_cannot_be_meant_is_refused(lasting_shop: Shop, wait: str) -> None:
    """By its name; waits go from 0 to 10 seconds."""
    reply = lasting_shop.front.ask("GET", f"/v1/claims/1?wait={wait}")

    if wait == "1&wait=2":
        reply.any_problem()
    else:
        assert ["colour" if "colour" in wait else "wait"] == reply.bad_fields()
