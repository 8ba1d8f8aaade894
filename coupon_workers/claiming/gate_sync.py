"""Bringing a template's change to the gate, once it is committed: the database leads, Redis follows."""

from __future__ import annotations

from coupon_workers.claiming.gate_rules import GateRules, read_gate_rules
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.offer_list import forget_offers
from coupon_workers.runtime.database import database_errors
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.services import Services


def sync_template(services: Services, template_id: int) -> None:
    """Bring the newest committed version of the template to its live keys; does nothing where they are cold. The
    claim centre's list is forgotten.

    Safe at any time and in any order: the script lets each version act once. Raises ``StoreUnavailable``.
    """
    with database_errors(), services.engine.connect() as connection:
        rules = read_gate_rules(connection, template_id)
    forget_offers(services)
    if rules is not None:
        for bucket in range(rules.bucket_count):
            _sync_bucket(services, rules, bucket)


def _sync_bucket(services: Services, rules: GateRules, bucket: int) -> None:
    keys = BucketKeys(rules.template_id, bucket)
    lua_script("sync_template")(
        services.redis,
        [keys.meta, keys.generation, keys.stock, keys.told],
        [rules.version, rules.share_of(bucket), *rules.meta()],
    )
