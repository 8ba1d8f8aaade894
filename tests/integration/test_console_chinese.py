"""In Chinese no page says a word of English, but for names, codes and what people have typed."""

from __future__ import annotations

import re

import pytest

from coupon_workers.audit.action import AuditAction
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.reconciliation.statement_row import FIELDS
from coupon_workers.runtime.services import Services
from coupon_workers.scheduling.job_table import TABLE
from tests.support.console_pages import EXAMPLES
from tests.support.console_text import half_width_marks, latin_words
from tests.support.console_visitor import Visitor
from tests.support.http_shop import Shop
from tests.tidy.checkout import ROOT
from tests.tidy.markdown import read, table_rows
from web.console.audit_word import AUDIT_WORDS
from web.console.core_word import subject_words, trigger_words
from web.console.finding_word import FINDING_CLASSES
from web.console.word import WORDS

NAMES = frozenset(
    {
        "API",
        "App",
        "Asia",
        "CN",
        "CNY",
        "CSV",
        "English",
        "HTTP",
        "ID",
        "IPv",
        "JSONL",
        "MiB",
        "Parquet",
        "RabbitMQ",
        "Redis",
        "SHA-",
        "Shanghai",
        "UTC",
    }
)
"""Of products, standards, zones and money."""

CODES = frozenset(
    {*FIELDS, "template", "user_id", "vip", "and", "not", "churned", "command", "line", "system", "p-", "u-"}
)
"""What is typed as it is: columns of a file, an expression over tags, operators that are no key."""

GIVEN = frozenset(
    {
        "A",
        "Boom",
        "Double",
        "Eleven",
        "Five",
        "Gift",
        "Just",
        "Late",
        "Lucky",
        "Nobody",
        "Regulars",
        "Thank",
        "Tomorrow",
        "Zoe",
        "ann",
        "ben",
        "cleo",
        "csv",
        "device_burst",
        "doorkeeper",
        "few",
        "former",
        "idle",
        "late",
        "much_money",
        "north",
        "now",
        "of",
        "off",
        "refund",
        "shared_ip",
        "storefront",
        "test",
        "the",
        "warehouse",
        "was",
        "wheel",
        "you",
    }
)
"""What the examples call their things."""


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "login"])
def test_a_page_in_chinese_says_nothing_in_english(services: Services, name: str) -> None:
    """A word of the core that nobody has translated would stand there raw."""
    shop = Shop(services, claim_rate=0)
    path = EXAMPLES[name](shop)

    page = Visitor(shop, "admin", "ops", "orders", language="zh").page(path)

    assert 'lang="zh-Hans"' in page
    assert [] == half_width_marks(page)
    assert set() == latin_words(page) - NAMES - CODES - GIVEN


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("ledger", "分录"),
        ("risk_lists", "取值类型"),
        ("order_statements", "接收时间"),
        ("order_statement", "提交人"),
        ("batch", "批次内容"),
        ("code_batch", "兑换码内容"),
        ("lottery", "抽奖内容"),
    ],
)
def test_a_heading_has_the_words_of_its_own_meaning(services: Services, name: str, heading: str) -> None:
    """One word of English may stand for several of Chinese."""
    shop = Shop(services, claim_rate=0)
    path = EXAMPLES[name](shop)

    page = Visitor(shop, "admin", "ops", "orders", language="zh").page(path)

    assert heading in page
    assert not {"模板内容", "发放什么"} & set(re.findall(r"<(?:h2|th)[^>]*>([^<]+)<", page))


def test_a_form_for_a_key_sent_empty_complains_in_chinese(services: Services) -> None:
    """By the labels of its fields, in both languages."""
    shop = Shop(services, claim_rate=0)

    told = {}
    for language in ("zh", "en"):
        visitor = Visitor(shop, "admin", language=language)
        found = re.search(r'name="allotted" value="([^"]+)"', visitor.page("/keys/new"))
        assert found is not None
        told[language] = visitor.post("/keys/new", allotted=found[1], name="").text

    assert '<a href="#f-name">名称</a>：请填写 1 到 100 个字符。' in told["zh"]
    assert '<a href="#f-scopes">权限范围</a>：请至少选择一项。' in told["zh"]
    assert [] == half_width_marks(told["zh"])
    assert '<a href="#f-scopes">Scopes</a>: Choose one at least.' in told["en"]


def test_the_page_for_logging_in_says_nothing_in_english(services: Services) -> None:
    """It is the first that anybody sees."""
    page = Shop(services).app.test_client().get("/console/login", headers={"Accept-Language": "zh-CN"}).text

    assert [] == half_width_marks(page)
    assert set() == latin_words(page) - NAMES - CODES - frozenset({"admin", "ops", "cw_", "Coupon", "Workers"})


def test_every_trigger_of_a_job_is_said_in_chinese(services: Services) -> None:
    """Of every shape that the table has; in English it is as the core says it."""
    app = Shop(services).app
    triggers = {job.trigger.words for job in TABLE}

    with app.test_request_context(headers={"Accept-Language": "en"}):
        assert {words: words for words in triggers} == {words: trigger_words(words) for words in triggers}
    with app.test_request_context(headers={"Accept-Language": "zh-CN"}):
        assert set() == set().union(*(latin_words(trigger_words(words)) for words in triggers)) - {"UTC"}
        assert "每 2 秒" == trigger_words("every 2 seconds")
        assert "每天 19:30（UTC），错过的逐次补跑" == trigger_words("every day at 19:30 UTC, each missed one too")
        assert "at noon" == trigger_words("at noon")


def test_every_class_of_a_finding_has_its_words(services: Services) -> None:
    """Those that the documents know; a subject is said in words too."""
    document = read(ROOT / "docs" / "reconciliation.md")
    sections = [document.section(heading) for heading in document.headings]
    cells = {row[0] for section in sections for row in table_rows(section)}
    classes = {name.strip("` ") for cell in cells if cell.startswith("`") for name in cell.split(",")}

    assert len(classes) > 30
    known = {name for names in FINDING_CLASSES.values() for name in names}
    assert known == classes - {*ReconKind, *RepairName}
    assert set(ReconKind) == FINDING_CLASSES.keys()
    assert set() == {name for name in classes if name not in WORDS}
    with Shop(services).app.test_request_context(headers={"Accept-Language": "zh-CN"}):
        assert "订单 O-1 用户 ann" == subject_words("order O-1 of ann")
        assert "兑换码批次 7" == subject_words("code batch 7")
        assert "whatever" == subject_words("whatever")


def test_every_action_of_the_audit_log_has_its_words() -> None:
    """Each its own: what is chosen in the filter is one action."""
    assert set(AuditAction) == AUDIT_WORDS.keys()
    assert len(AUDIT_WORDS) == len(set(AUDIT_WORDS.values()))
