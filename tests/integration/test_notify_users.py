"""Messages to users: by mail to a real server, by the log, by a gateway for short messages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import text
from structlog.testing import capture_logs

from coupon_workers.errors import InvalidInput, NotFound
from coupon_workers.notify.channel import Message
from coupon_workers.notify.contact import delete_contact, put_contact, read_contact
from coupon_workers.notify.failure import Refused, Unreachable
from coupon_workers.notify.smtp_channel import SmtpChannel
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.notify_bureau import Bureau
from tests.support.notify_certificate import server_context, write_certificate
from tests.support.notify_mailbox import Mailbox
from tests.support.template import TEMPLATE_ID

SENDER = "coupons@shop.example"


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    """A mail server that takes everything."""
    with Mailbox().serving() as mailbox:
        yield mailbox


@pytest.fixture
def bureau(services: Services, mailbox: Mailbox) -> Bureau:
    """Mail is in use, ann has an address, and a coupon of 20.00 from 100.00."""
    bureau = _bureau(services, mailbox)
    bureau.template()
    put_contact(bureau.services, "ann", "smtp", "ann@users.example")
    return bureau


def _bureau(services: Services, mailbox: Mailbox, **changed: Any) -> Bureau:
    url = SecretStr(f"smtp://127.0.0.1:{mailbox.port}")
    return Bureau(services, **{"message_channels": "smtp", "smtp_url": url, "mail_from": SENDER, **changed})


def _tell(bureau: Bureau, coupon: int = 1, event: str = "coupon.issued", **detail: str) -> None:
    """Put the event into the outbox and pass it on; the coupon is there, unless it was rejected."""
    if event != "claim.rejected":
        with bureau.services.engine.begin() as connection:
            connection.execute(
                text(
                    "INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version,"
                    " valid_from, valid_to, source, claimed_at)"
                    " VALUES ('ann', :coupon, :template_id, :coupon, :request, 1, :now, :to, 'claim', :now)"
                    " ON CONFLICT DO NOTHING"
                ),
                {
                    "coupon": coupon,
                    "template_id": TEMPLATE_ID,
                    "request": f"r{coupon}",
                    "now": utc_now(),
                    "to": utc_now() + timedelta(days=7),
                },
            )
    bureau.tell(coupon, event, **detail)
    bureau.relay()


def test_a_user_gets_mail_of_a_coupon(bureau: Bureau, mailbox: Mailbox) -> None:
    """From the shop, to his address, with the worth of the coupon and its end in the template's time zone."""
    _tell(bureau)

    assert 1 == bureau.deliver("smtp")

    [mail] = mailbox.mails
    assert [(SENDER, ["ann@users.example"])] == mailbox.envelopes
    assert "You have a new coupon: Double Eleven 100-20" == mail["Subject"]
    assert (SENDER, "ann@users.example", "auto-generated") == (mail["From"], mail["To"], mail["Auto-Submitted"])
    assert mail["Message-ID"].startswith("<msg_") and mail["Message-ID"].endswith("@shop.example>")
    assert "CN¥20.00 off from CN¥100.00" in mail.get_content()
    assert [(1, "delivered", 1)] == bureau.states()


def test_the_language_is_the_shops(services: Services, mailbox: Mailbox) -> None:
    """Chinese, in a mail that any reader shows."""
    bureau = _bureau(services, mailbox, message_language="zh")
    bureau.template(name="双十一 100-20")
    put_contact(bureau.services, "ann", "smtp", "ann@users.example")
    _tell(bureau)

    bureau.deliver("smtp")

    [mail] = mailbox.mails
    assert "您有一张新优惠券：双十一 100-20" == mail["Subject"]
    assert "满¥100.00立减¥20.00" in mail.get_content()


def test_a_rejected_claim_is_told_with_its_reason(bureau: Bureau, mailbox: Mailbox) -> None:
    """The user had been told that it was accepted."""
    _tell(bureau, 5, "claim.rejected", reason="SOLD_OUT")

    bureau.deliver("smtp")

    assert "All coupons are gone." in mailbox.mails[0].get_content()
    assert "No coupon this time: Double Eleven 100-20" == mailbox.mails[0]["Subject"]


def test_a_user_is_warned_before_the_end_of_an_unused_coupon_only(bureau: Bureau, mailbox: Mailbox) -> None:
    """One that was used meanwhile is no reason to write, nor one whose end has come."""
    _tell(bureau, 1, "coupon.expiring")
    bureau.deliver("smtp")
    bureau.run("UPDATE coupon SET status = 'redeemed', order_no = 'o'")
    _tell(bureau, 1, "coupon.issued")
    bureau.run("DELETE FROM outbox")
    _tell(bureau, 1, "coupon.expiring")
    bureau.run("UPDATE coupon SET valid_from = valid_to - interval '2 years', valid_to = valid_to - interval '1 year'")

    bureau.deliver("smtp")

    assert ["Your coupon ends soon: Double Eleven 100-20"] == [mail["Subject"] for mail in mailbox.mails]
    assert [None, "the coupon is not valid any more", "the coupon is not unused any more"] == bureau.errors()


def test_a_user_without_an_address_is_not_written_to(bureau: Bureau, mailbox: Mailbox) -> None:
    """The log says why, and the others get theirs."""
    delete_contact(bureau.services, "ann", "smtp")
    _tell(bureau)

    bureau.deliver("smtp")

    assert ([(1, "discarded", 0)], []) == (bureau.states(), mailbox.mails)
    assert ["the user has no address for smtp"] == bureau.errors()


@pytest.mark.parametrize(("answer", "state"), [("550 no such user", "dead"), ("451 later", "pending")])
def test_a_server_that_refuses_the_receiver_means_it(bureau: Bureau, mailbox: Mailbox, answer: str, state: str) -> None:
    """5xx is for good, 4xx for now; the next mail goes out over the same connection."""
    put_contact(bureau.services, "ann", "smtp", "gone@users.example")
    mailbox.recipients["gone@users.example"] = answer
    _tell(bureau)

    bureau.deliver("smtp")

    assert [(1, state, 1)] == bureau.states()
    assert answer in str(bureau.errors()[0])
    mailbox.recipients.clear()
    bureau.move(seconds=5)
    bureau.deliver("smtp")
    assert (state == "pending") == bool(mailbox.mails)


@pytest.mark.parametrize(("answer", "state"), [("554 spam", "dead"), ("452 full", "pending")])
def test_a_server_that_refuses_the_content_means_it(bureau: Bureau, mailbox: Mailbox, answer: str, state: str) -> None:
    """The same after DATA."""
    mailbox.data = answer
    _tell(bureau)

    bureau.deliver("smtp")

    assert [(1, state, 1)] == bureau.states()


def test_a_server_that_does_not_answer_is_left_alone_and_asked_again(services: Services, mailbox: Mailbox) -> None:
    """Nothing is lost meanwhile."""
    bureau = _bureau(services, mailbox, smtp_url=SecretStr("smtp://127.0.0.1:1"))
    bureau.template()
    put_contact(bureau.services, "ann", "smtp", "ann@users.example")
    _tell(bureau, 1)
    _tell(bureau, 2)

    assert 1 == bureau.deliver("smtp")

    assert [(1, "pending", 1), (2, "pending", 0)] == bureau.states()
    assert "refused" in str(bureau.errors()[0])


def test_a_name_full_of_line_ends_adds_no_header(services: Services, mailbox: Mailbox) -> None:
    """Whatever whoever drafts templates writes."""
    bureau = _bureau(services, mailbox)
    bureau.template(name="Sale\r\nBcc: eve@evil.example\r\n\r\nRead this\x01\x85\u2028.\nDATA")
    put_contact(bureau.services, "ann", "smtp", "ann@users.example")
    _tell(bureau)

    bureau.deliver("smtp")

    [mail] = mailbox.mails
    assert None is mail["Bcc"]
    assert [["ann@users.example"]] == [receivers for _, receivers in mailbox.envelopes]
    assert "You have a new coupon: Sale Bcc: eve@evil.example Read this . DATA" == mail["Subject"]


@pytest.mark.parametrize(
    "address",
    ["a@b.example\r\nBcc: eve@evil.example", "a@b.example>\r\nDATA", "a b@c.example", "a@b@c", "@b", "a@", ""],
)
def test_an_address_that_could_end_a_line_is_refused(services: Services, mailbox: Mailbox, address: str) -> None:
    """When it is set, and once more by the channel, should it have come into the table in another way."""
    with pytest.raises(InvalidInput):
        put_contact(services, "ann", "smtp", address)
    channel = SmtpChannel(f"smtp://127.0.0.1:{mailbox.port}", SENDER)

    with pytest.raises(Refused):
        channel.send(_message(address))

    assert [] == mailbox.envelopes


def _message(address: str) -> Message:
    return Message("msg_1", "coupon.issued", utc_now(), "ann", {}, address, "subject", "text")


@pytest.mark.filterwarnings("ignore:Requiring AUTH")
def test_a_server_that_wants_a_password_gets_it() -> None:
    """From the URL, unquoted; a wrong one is a fault of the settings, and no message is lost by it."""
    guarded = Mailbox()
    with guarded.serving(
        authenticator=guarded.authenticate, auth_require_tls=False, auth_required=True, auth_exclude_mechanism=["LOGIN"]
    ):
        right = SmtpChannel(f"smtp://shop%40x:p%40ss%3Aword@127.0.0.1:{guarded.port}", SENDER)
        wrong = SmtpChannel(f"smtp://shop:no@127.0.0.1:{guarded.port}", SENDER)

        assert 250 == right.send(_message("ann@users.example"))
        with pytest.raises(Unreachable):
            wrong.send(_message("ann@users.example"))
        right.close()

    assert ((b"shop@x", b"p@ss:word"), 1) == (guarded.logins[0], len(guarded.mails))


@pytest.mark.parametrize("trusted", [True, False])
def test_mail_is_encrypted_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    """By STARTTLS, with a certificate that this machine trusts; with any other there is no mail."""
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(write_certificate(tmp_path)))
    with Mailbox().serving(tls_context=server_context(tmp_path), require_starttls=True) as mailbox:
        channel = SmtpChannel(f"smtp+starttls://localhost:{mailbox.port}", SENDER)
        if trusted:
            assert 250 == channel.send(_message("ann@users.example"))
        else:
            with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
                channel.send(_message("ann@users.example"))
        channel.close()

    assert trusted == bool(mailbox.mails)


def test_no_mail_goes_to_a_server_without_the_encryption_asked_for(mailbox: Mailbox) -> None:
    """STARTTLS that is not offered is no reason to go on in the clear."""
    channel = SmtpChannel(f"smtp+starttls://127.0.0.1:{mailbox.port}", SENDER)

    with pytest.raises(Unreachable):
        channel.send(_message("ann@users.example"))

    assert [] == mailbox.envelopes


def test_the_log_is_a_channel_that_needs_no_address(services: Services) -> None:
    """And the example of a gateway for short messages writes there, too, without the number."""
    bureau = Bureau(services, message_channels="log,sms")
    bureau.template()
    put_contact(bureau.services, "ann", "sms", "+8613800138000")
    _tell(bureau)

    with capture_logs() as logs:
        bureau.deliver("log")
        bureau.deliver("sms")

    [told] = [line for line in logs if line["event"] == "message to a user"]
    [short] = [line for line in logs if line["event"] == "short message"]
    assert ("ann", "coupon.issued") == (told["user_id"], told["about"])
    assert told["text"] == short["text"]
    assert "8613800138" not in str(short)
    assert [(1, "delivered", 1), (1, "delivered", 1)] == bureau.states()


def test_a_channel_that_is_not_in_use_sends_nothing(bureau: Bureau, mailbox: Mailbox) -> None:
    """Its messages wait for it to come back."""
    _tell(bureau)
    silent = Bureau(bureau.services, message_channels=None)

    assert (0, [(1, "pending", 0)]) == (silent.deliver("smtp"), bureau.states())


def test_a_contact_is_one_address_for_a_channel(services: Services) -> None:
    """Set again it is another; forgotten it is none."""
    put_contact(services, "ann", "smtp", "old@users.example")
    put_contact(services, "ann", "smtp", "new@users.example")

    assert "new@users.example" == read_contact(services, "ann", "smtp").address
    assert "new@users.example" == delete_contact(services, "ann", "smtp").address
    for channel, code in (("smtp", "CONTACT_NOT_FOUND"), ("log", "CHANNEL_NOT_FOUND"), ("pigeon", "CHANNEL_NOT_FOUND")):
        with pytest.raises(NotFound) as missing:
            read_contact(services, "ann", channel)
        assert code == missing.value.code
