"""The crowds of the guarded sale: the same seed, the same crush; the farms come again."""

from __future__ import annotations

from collections import Counter

import pytest

from coupon_workers.demo.guarded_crowd import POLICY, crowd_of, crowds, first_wave, second_wave
from coupon_workers.demo.stage import MOST_STEPS, scale_of
from coupon_workers.risk.policy import RiskPolicyBody


def test_the_same_seed_makes_the_same_crush() -> None:
    """Another one another."""
    crowd = crowds(1)

    waves = [first_wave(crowd, "1", run="r", seed=seed) for seed in (1, 1, 2)]

    assert waves[0] == waves[1]
    assert waves[0] != waves[2]


def test_every_account_claims_once_and_the_farms_again() -> None:
    """Retries are the same request; the second wave are new ones."""
    crowd = crowds(2)
    accounts = {each.name: each.users for each in crowd}

    first = first_wave(crowd, "1", run="r", seed=1)
    second = second_wave(crowd, "1", run="r")

    assert accounts == Counter(crowd_of(user_id) for user_id in {call.user_id for call in first})
    assert {each.name for each in crowd if each.hostile} == {crowd_of(call.user_id) for call in second}
    assert not {call.request_id for call in first} & {call.request_id for call in second}


def test_only_a_farm_shares_a_device_and_only_it_and_the_office_an_address() -> None:
    """So that no rule fires on anybody else."""
    first = first_wave(crowds(8), "1", run="r", seed=1)

    devices = Counter(device for device, _ in {(call.device_id, call.user_id) for call in first})
    addresses = Counter(ip for ip, _ in {(call.ip, call.user_id) for call in first})

    assert [400, 1] == [users for _, users in devices.most_common(2)]
    assert [200, 10, 1] == [users for _, users in addresses.most_common(3)]


def test_the_policy_is_one_that_the_api_takes() -> None:
    """Its names are those of the report."""
    rules = RiskPolicyBody.model_validate(POLICY).rules

    assert ["accounts_of_device", "flood_of_address", "accounts_of_address"] == [rule.name for rule in rules]


@pytest.mark.parametrize(("claims", "scale"), [(1_000, 1), (6_000, 2), (24_000, MOST_STEPS), (1_000_000, MOST_STEPS)])
def test_the_stories_grow_with_the_sale_up_to_a_bound(claims: int, scale: int) -> None:
    """A demo of a million claims has no larger attack."""
    assert scale == scale_of(claims)
