"""What docs/security.md says of secrets, addresses and scopes, where no other test shows it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from coupon_workers.access.api_key import create_key
from coupon_workers.notify.contact import put_contact
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.structured_log import configure_logs
from tests.support.code_batch import plan_codes
from tests.support.http_shop import Shop
from tests.support.notify_bureau import Bureau
from tests.support.sale import open_sale
from web.auth import scopes_of
from web.path_template import path_template

ADDRESS = "ann@users.example"
PASSWORD = "a-password-of-the-mail-server"


def test_a_storefronts_key_opens_its_own_addresses_alone(services: Services) -> None:
    """Every other one answers 403, whatever is asked of it."""
    shop = Shop(services)
    closed = [
        (method, path_template(rule.rule).replace("{", "").replace("}", ""))
        for rule in shop.app.url_map.iter_rules()
        if (scopes := scopes_of(shop.app.view_functions[rule.endpoint])) and "storefront" not in scopes
        for method in (rule.methods or set()) - {"OPTIONS", "HEAD"}
    ]

    answers = {call: shop.front.ask(*call).status for call in closed}

    assert len(answers) > 50
    assert {} == {call: status for call, status in answers.items() if status != 403}


def test_codes_in_the_database_are_no_codes(services: Services) -> None:
    """Neither as they are nor sealed, once they were fetched."""
    desk = plan_codes(open_sale(services, total_quantity=20), 10)
    desk.generate()
    codes = desk.fetch()

    with services.engine.connect() as connection:
        rows = [*connection.execute(text("SELECT * FROM code")), *connection.execute(text("SELECT * FROM code_batch"))]
        sealed = connection.execute(text("SELECT count(*) FROM code_export_part")).scalar()

    assert len(codes) == 10
    assert [] == [code for code in codes for row in rows if code in repr(tuple(row))]
    assert 0 == sealed


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """All that this process says, at its most talkative; reads what was told since it was last asked."""
    configure_logs(Settings(log_level="DEBUG", log_format="console"), for_good=False)
    return lambda: "".join(capsys.readouterr())


def test_no_log_tells_an_address_or_a_password(services: Services, told: Callable[[], str]) -> None:
    """Also where the mail server does not answer."""
    url = SecretStr(f"smtp://shop:{PASSWORD}@127.0.0.1:1")
    bureau = Bureau(services, message_channels="smtp", smtp_url=url, mail_from="shop@shop.example")
    bureau.template()
    put_contact(bureau.services, "ann", "smtp", ADDRESS)
    bureau.tell(1, "claim.rejected", reason="PAUSED")
    bureau.relay()

    bureau.deliver("smtp")

    assert [error for error in bureau.errors() if error]
    words = told() + repr(bureau.errors())
    assert "target=smtp" in words
    assert ADDRESS not in words and PASSWORD not in words


def test_a_wrong_key_is_in_no_log(services: Services, told: Callable[[], str]) -> None:
    """Nor is a right one."""
    app = Shop(services).app
    right = create_key(services.engine, name="storefront", scopes=["admin"]).key
    wrong = right[:-4] + "xxxx"

    answers = [
        app.test_client().get("/v1/templates", headers={"Authorization": f"Bearer {key}"}).status_code
        for key in (right, wrong)
    ]

    words = told()
    assert [200, 401] == answers
    assert 2 == words.count("path=/v1/templates")
    assert right[-20:-4] not in words
