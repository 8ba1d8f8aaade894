"""Messages to users by mail."""

from __future__ import annotations

import smtplib
import ssl
from contextlib import suppress
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import NoReturn
from urllib.parse import unquote, urlsplit

from coupon_workers.notify.channel import Message
from coupon_workers.notify.failure import DeliveryFailure, Refused, TryAgain, Unreachable
from coupon_workers.runtime.settings import MAIL_ADDRESS

TIMEOUT_S = 10.0
PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


class SmtpChannel:
    """A mail server, at ``smtp://``, ``smtp+starttls://`` or ``smtps://``, with user and password in the URL if it
    wants them. Certificates are verified. One connection for the messages of a turn, made at the first."""

    def __init__(self, url: str, sender: str) -> None:
        self._url = urlsplit(url)
        self._sender = sender
        self._server: smtplib.SMTP | None = None

    def send(self, message: Message) -> int:
        """Send one mail; the server's code.

        Raises ``Refused`` when the server will never take this mail, for its receiver or its content; ``TryAgain``
        when it will not now; ``Unreachable`` when it does not answer or does not let us in.
        """
        if not MAIL_ADDRESS.fullmatch(message.address):
            raise Refused("the user's address is no mail address")
        mail = self._mail(message)
        server = self._server or self._connect()
        try:
            server.send_message(mail, self._sender, [message.address])
        except smtplib.SMTPRecipientsRefused as error:
            [(code, said)] = error.recipients.values()
            raise _failure(code, said) from error
        except smtplib.SMTPDataError as error:
            raise _failure(error.smtp_code, error.smtp_error) from error
        except (smtplib.SMTPException, OSError) as error:
            self._give_up(error)
        return 250

    def close(self) -> None:
        """Say good-bye, if there is a connection."""
        if self._server is not None:
            with suppress(smtplib.SMTPException, OSError):
                self._server.quit()
            self._server = None

    def _mail(self, message: Message) -> EmailMessage:
        # The policy refuses line ends in headers; the letter has none, whatever the names of templates hold.
        mail = EmailMessage(policy=SMTP)
        mail["From"] = self._sender
        mail["To"] = message.address
        mail["Subject"] = message.subject
        mail["Date"] = format_datetime(message.occurred_at)
        mail["Message-ID"] = f"<{message.message_id}@{self._sender.rpartition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(message.text, cte="quoted-printable")
        return mail

    def _connect(self) -> smtplib.SMTP:
        host, port = self._url.hostname or "localhost", self._url.port or PORTS[self._url.scheme]
        try:
            if self._url.scheme == "smtps":
                context = ssl.create_default_context()
                server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=TIMEOUT_S, context=context)
            else:
                server = smtplib.SMTP(host, port, timeout=TIMEOUT_S)
            self._server = server
            if self._url.scheme == "smtp+starttls":
                server.starttls(context=ssl.create_default_context())
            if self._url.username:
                server.login(unquote(self._url.username), unquote(self._url.password or ""))
        except (smtplib.SMTPException, OSError) as error:
            self._give_up(error)
        return server

    def _give_up(self, error: smtplib.SMTPException | OSError) -> NoReturn:
        """The next message opens another connection."""
        self.close()
        code = error.smtp_code if isinstance(error, smtplib.SMTPResponseException) else None
        raise Unreachable(f"{type(error).__name__}: {error}"[:500], code) from error


def _failure(code: int, said: bytes | str) -> DeliveryFailure:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    kind = Refused if code >= 500 else TryAgain
    return kind(f"the mail server answered {code} {text}"[:500], code)
