"""What is written in the console is written down: each write names the action by which the audit log tells of it."""

from __future__ import annotations

from coupon_workers.audit.action import AuditAction
from coupon_workers.runtime.services import Services
from tests.support.http_shop import Shop

ACTIONS = {
    "/console/templates/new": {AuditAction.TEMPLATE_CREATE},
    "/console/templates/<template_id>/edit": {AuditAction.TEMPLATE_CHANGE},
    "/console/templates/<template_id>/adjust": {AuditAction.TEMPLATE_CHANGE, AuditAction.TEMPLATE_ASK_APPROVAL},
    "/console/templates/<template_id>/clone": {AuditAction.TEMPLATE_CREATE},
    "/console/templates/<template_id>/publish": {AuditAction.TEMPLATE_PUBLISH},
    "/console/templates/<template_id>/act": {
        AuditAction.TEMPLATE_PAUSE,
        AuditAction.TEMPLATE_RESUME,
        AuditAction.TEMPLATE_OFFLINE,
        AuditAction.TEMPLATE_ARCHIVE,
        AuditAction.TEMPLATE_PREHEAT,
    },
    "/console/templates/<template_id>/decide": {
        AuditAction.TEMPLATE_APPROVE,
        AuditAction.TEMPLATE_REJECT,
        AuditAction.TEMPLATE_WITHDRAW,
    },
    "/console/batches/new": {AuditAction.BATCH_CREATE},
    "/console/batches/<batch_no>/act": {
        AuditAction.BATCH_APPROVE,
        AuditAction.BATCH_PAUSE,
        AuditAction.BATCH_RESUME,
        AuditAction.BATCH_CANCEL,
    },
    "/console/code-batches/new": {AuditAction.CODES_CREATE},
    "/console/code-batches/<code_batch_id>/codes.csv": {AuditAction.CODES_FETCH},
    "/console/code-batches/<code_batch_id>/revoke": {AuditAction.CODES_REVOKE},
    "/console/lotteries/new": {AuditAction.LOTTERY_CREATE},
    "/console/lotteries/<lottery_id>/edit": {AuditAction.LOTTERY_CHANGE},
    "/console/lotteries/<lottery_id>/act": {
        AuditAction.LOTTERY_APPROVE,
        AuditAction.LOTTERY_PAUSE,
        AuditAction.LOTTERY_RESUME,
        AuditAction.LOTTERY_END,
    },
    "/console/findings/<finding_id>/approve": {AuditAction.FINDING_APPROVE},
    "/console/findings/<finding_id>/ignore": {AuditAction.FINDING_IGNORE},
    "/console/daily-closes": {AuditAction.DAY_CLOSE},
    "/console/daily-closes/<date>/reopen": {AuditAction.DAY_REOPEN},
    "/console/order-statements": {AuditAction.STATEMENT_TAKE, AuditAction.RECONCILIATION_ASK},
    "/console/reconciliations": {AuditAction.RECONCILIATION_ASK},
    "/console/new-risk-policy": {AuditAction.RISK_POLICY_PUT},
    "/console/risk-policies/<name>/edit": {AuditAction.RISK_POLICY_PUT},
    "/console/risk-policies/<name>/shadow": {AuditAction.RISK_POLICY_PUT},
    "/console/risk-policies/<name>/delete": {AuditAction.RISK_POLICY_DELETE},
    "/console/risk-lists": {AuditAction.RISK_LIST_PUT},
    "/console/risk-lists/take-off": {AuditAction.RISK_LIST_DELETE},
    "/console/risk-reviews": {AuditAction.RISK_REVIEW_APPROVE, AuditAction.RISK_REVIEW_REJECT},
    "/console/coupons/<coupon_no>/revoke": {AuditAction.COUPON_REVOKE},
    "/console/coupons/<coupon_no>/unlock": {AuditAction.COUPON_UNLOCK},
    "/console/coupons/<coupon_no>/reissue": {AuditAction.COUPON_REISSUE},
    "/console/dead-letters/<message_id>/replay": {AuditAction.DEAD_LETTER_REPLAY},
    "/console/dead-letters/<message_id>/discard": {AuditAction.DEAD_LETTER_DISCARD},
    "/console/jobs/<name>/run": {AuditAction.JOB_RUN},
    "/console/keys/new": {AuditAction.API_KEY_CREATE},
    "/console/keys/<key_id>/revoke": {AuditAction.API_KEY_REVOKE},
}
"""By the address of the write; the tests of each page see the rows."""

EXEMPT = {
    "/console/login": "opens a session, changes nothing",
    "/console/logout": "ends a session, changes nothing",
    "/console/language": "is a matter of the browser",
    "/console/templates/preview": "writes nothing",
    "/console/lotteries/preview": "writes nothing",
    "/console/codes/lookup": "writes nothing",
}
"""Writes that the log does not tell of, with the reason."""


def test_every_write_of_the_console_is_audited_or_exempt(services: Services) -> None:
    """A new one cannot be forgotten."""
    writes = {
        rule.rule
        for rule in Shop(services).app.url_map.iter_rules()
        if rule.endpoint.startswith("console.") and (rule.methods or set()) - {"GET", "HEAD", "OPTIONS"}
    }

    assert writes == ACTIONS.keys() | EXEMPT.keys()
