"""Actions of the audit log, as people read them."""

from __future__ import annotations

from web.console.language import N_, gettext

AUDIT_WORDS = {
    "template.create": N_("template made"),
    "template.change": N_("template changed"),
    "template.publish": N_("template published"),
    "template.ask_approval": N_("template put before a second person"),
    "template.approve": N_("template approved"),
    "template.reject": N_("template rejected"),
    "template.withdraw": N_("request about a template withdrawn"),
    "template.pause": N_("template paused"),
    "template.resume": N_("template resumed"),
    "template.offline": N_("template taken offline"),
    "template.archive": N_("template put away"),
    "template.preheat": N_("template loaded into Redis"),
    "template.revoke": N_("coupons of a template recalled"),
    "coupon.revoke": N_("coupon revoked"),
    "coupon.reissue": N_("coupon given by hand"),
    "coupon.unlock": N_("coupon unlocked"),
    "batch.create": N_("batch made"),
    "batch.approve": N_("batch approved"),
    "batch.pause": N_("batch paused"),
    "batch.resume": N_("batch resumed"),
    "batch.cancel": N_("batch cancelled"),
    "codes.create": N_("codes made"),
    "codes.fetch": N_("codes fetched"),
    "codes.revoke": N_("codes revoked"),
    "lottery.create": N_("lottery made"),
    "lottery.change": N_("lottery changed"),
    "lottery.approve": N_("lottery approved"),
    "lottery.pause": N_("lottery paused"),
    "lottery.resume": N_("lottery resumed"),
    "lottery.end": N_("lottery ended"),
    "tags.set": N_("tags of a user set"),
    "tags.import": N_("tags imported"),
    "ledger.adjust": N_("ledger adjusted"),
    "day.close": N_("day closed"),
    "day.reopen": N_("day opened again"),
    "reconciliation.ask": N_("reconciliation asked for"),
    "statement.take": N_("order statement taken"),
    "finding.approve": N_("repair of a finding approved"),
    "finding.ignore": N_("finding left as it is"),
    "webhook.create": N_("webhook made"),
    "webhook.end": N_("webhook ended"),
    "delivery.replay": N_("message to a webhook sent again"),
    "api_key.create": N_("key made"),
    "api_key.revoke": N_("key revoked"),
    "dead_letter.replay": N_("dead letter sent again"),
    "dead_letter.discard": N_("dead letter thrown away"),
    "job.run": N_("job run by hand"),
    "risk_policy.put": N_("risk policy written"),
    "risk_policy.delete": N_("risk policy taken away"),
    "risk_list.put": N_("put on a list"),
    "risk_list.delete": N_("taken off a list"),
    "risk_score.put": N_("score of a user set"),
    "risk_review.approve": N_("held claim approved"),
    "risk_review.reject": N_("held claim rejected"),
}


def action_word(action: str) -> str:
    """What was done; as programs call it where the table does not know it."""
    return gettext(AUDIT_WORDS.get(action, action))
