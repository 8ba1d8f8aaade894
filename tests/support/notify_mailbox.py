"""A mail server on this machine, which refuses whom and what a test names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult

from tests.support.http_system import free_port


class Mailbox:
    """What was taken lies in ``mails``. ``recipients`` address → answer to RCPT; ``data`` answer to DATA."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.envelopes: list[tuple[str, list[str]]] = []
        self.recipients: dict[str, str] = {}
        self.data = ""
        self.logins: list[tuple[bytes, bytes]] = []
        self.port = 0

    async def handle_RCPT(self, _server: SMTP, _session: Any, envelope: Any, address: str, _options: Any) -> str:  # noqa: N802
        """aiosmtpd's hook."""
        refusal = self.recipients.get(address)
        if refusal:
            return refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, _session: Any, envelope: Any) -> str:  # noqa: N802
        """aiosmtpd's hook."""
        if self.data:
            return self.data
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        self.envelopes.append((envelope.mail_from, list(envelope.rcpt_tos)))
        return "250 OK"

    def authenticate(self, _server: SMTP, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        """aiosmtpd's hook: one user is known."""
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b"p@ss:word")

    @contextmanager
    def serving(self, **options: Any) -> Iterator[Mailbox]:
        """It listens meanwhile."""
        self.port = free_port()  # aiosmtpd knocks at the number it was given
        controller = Controller(self, hostname="127.0.0.1", port=self.port, **options)
        controller.start()
        try:
            yield self
        finally:
            controller.stop()
