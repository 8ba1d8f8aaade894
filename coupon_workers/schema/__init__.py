"""The tables, typed and with every constraint named, and their migrations."""

from coupon_workers.schema.access import ApiKey, Idempotency
from coupon_workers.schema.audience import AudienceFile, AudienceMember, BatchFailure, UserTag
from coupon_workers.schema.audit_log import AuditLog
from coupon_workers.schema.base import Base
from coupon_workers.schema.claim_rejection import ClaimRejection, ClaimSetAside
from coupon_workers.schema.code import Code
from coupon_workers.schema.code_batch import CodeBatch, CodeExportPart
from coupon_workers.schema.coupon import Coupon
from coupon_workers.schema.coupon_archive import ArchivePass, CouponArchive, CouponFlowArchive
from coupon_workers.schema.coupon_flow import CouponFlow
from coupon_workers.schema.coupon_order import CouponOrder
from coupon_workers.schema.coupon_refund import CouponRefund
from coupon_workers.schema.coupon_revocation import CouponRevocation
from coupon_workers.schema.coupon_template import CouponTemplate
from coupon_workers.schema.coupon_transfer import CouponTransfer
from coupon_workers.schema.coupon_use import CouponUse
from coupon_workers.schema.daily_close import DailyClose, DailyCloseRow
from coupon_workers.schema.delivery import Delivery, DeliveryAttempt, DeliveryPause
from coupon_workers.schema.issue_batch import IssueBatch, IssueShard
from coupon_workers.schema.ledger_entry import LedgerEntry
from coupon_workers.schema.lottery import Draw, Lottery, Prize
from coupon_workers.schema.order_event import OrderEvent
from coupon_workers.schema.order_statement import OrderStatement, OrderStatementRow
from coupon_workers.schema.outbox import Outbox
from coupon_workers.schema.pool_value import PoolValue
from coupon_workers.schema.reconciliation import ReconFinding, ReconRun, ReconRunFinding
from coupon_workers.schema.risk_policy import RiskListEntry, RiskPolicy, RiskPolicyVersion, RiskScore
from coupon_workers.schema.risk_verdict import RiskLogLoss, RiskReview, RiskVerdict
from coupon_workers.schema.scheduling import JobExtraRun, JobRun, SchedulerLease
from coupon_workers.schema.template_approval import TemplateApproval
from coupon_workers.schema.user_contact import UserContact
from coupon_workers.schema.wallet_change import wallet_change
from coupon_workers.schema.webhook import Webhook

__all__ = [
    "ApiKey",
    "ArchivePass",
    "AudienceFile",
    "AudienceMember",
    "AuditLog",
    "Base",
    "BatchFailure",
    "ClaimRejection",
    "ClaimSetAside",
    "Code",
    "CodeBatch",
    "CodeExportPart",
    "Coupon",
    "CouponArchive",
    "CouponFlow",
    "CouponFlowArchive",
    "CouponOrder",
    "CouponRefund",
    "CouponRevocation",
    "CouponTemplate",
    "CouponTransfer",
    "CouponUse",
    "DailyClose",
    "DailyCloseRow",
    "Delivery",
    "DeliveryAttempt",
    "DeliveryPause",
    "Draw",
    "Idempotency",
    "IssueBatch",
    "IssueShard",
    "JobExtraRun",
    "JobRun",
    "LedgerEntry",
    "Lottery",
    "OrderEvent",
    "OrderStatement",
    "OrderStatementRow",
    "Outbox",
    "PoolValue",
    "Prize",
    "ReconFinding",
    "ReconRun",
    "ReconRunFinding",
    "RiskListEntry",
    "RiskLogLoss",
    "RiskPolicy",
    "RiskPolicyVersion",
    "RiskReview",
    "RiskScore",
    "RiskVerdict",
    "SchedulerLease",
    "TemplateApproval",
    "UserContact",
    "UserTag",
    "Webhook",
    "wallet_change",
]
