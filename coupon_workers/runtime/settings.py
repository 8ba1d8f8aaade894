"""The configuration: read once from ``COUPON_*`` variables, frozen, cross-checked.

A value that cannot work raises ``SettingsError`` naming the variable; nothing starts on half a configuration.
Every setting is documented in ``docs/settings.md``, and a test holds the two together.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from coupon_workers.errors import SettingsError
from coupon_workers.templates.currency import EXPONENTS

PREFIX = "COUPON_"

MESSAGE_CHANNELS = frozenset(("log", "smtp", "sms"))
"""The ways to users that there are (notify/)."""

LEAST_ARCHIVE_DAYS = 30
"""A template's gate leaves Redis a week after its end, and an event of a coupon is told within thirty days or never."""

SHORTEST_PEPPER = 16
"""Bytes of a secret that a stolen database must not be searched for."""

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"

MAIL_ADDRESS = re.compile(
    rf"(?=.{{1,254}}\Z)[\w!#$%&'*+/=?^`{{|}}~-]{{1,64}}(?:\.[\w!#$%&'*+/=?^`{{|}}~-]{{1,64}})*"
    rf"@(?:{_LABEL}\.)*{_LABEL}",
    re.ASCII,
)
"""RFC 5322's dot-atom at a host's name, in ASCII: nothing in it can end a header or a command of SMTP."""


def _cores() -> int:
    return os.cpu_count() or 1


class Settings(BaseSettings):
    """Every setting with its default. Field ``http_port`` is the variable ``COUPON_HTTP_PORT``."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="ignore")

    http_host: str = Field("127.0.0.1", description="address the web server listens on")
    http_port: int = Field(8000, ge=1, le=65535, description="port the web server listens on")
    data_dir: Path = Field(Path(".coupon"), description="folder of the embedded servers' data")

    database_url: SecretStr | None = Field(None, description="PostgreSQL; embedded when unset")
    redis_url: SecretStr | None = Field(None, description="Redis or Valkey of stock and claims; embedded when unset")
    broker_url: SecretStr | None = Field(None, description="Redis or RabbitMQ for messages; embedded when unset")

    web_workers: int = Field(default_factory=_cores, ge=1, le=256, description="processes of the web server")
    web_threads: int = Field(8, ge=1, le=512, description="threads of a web process")
    worker_processes: int = Field(1, ge=1, le=256, description="processes that run actors")
    worker_threads: int = Field(4, ge=1, le=256, description="threads of a process that runs actors")
    database_pool: int = Field(5, ge=1, le=100, description="database connections a process keeps")

    code_pepper: SecretStr | None = Field(
        None, description="keys of the hash of redeem codes, the newest first, separated by commas"
    )
    guess_limit: int = Field(
        10,
        ge=1,
        le=1_000,
        description="wrong redeem codes per user and ten minutes; a device twice, an address ten times",
    )
    backlog_limit: int = Field(100_000, ge=1, le=10_000_000, description="queued claims per template and bucket")
    claim_rate: int = Field(50, ge=0, le=100_000, description="claims per user, template and second; 0: no limit")
    redis_timeout_ms: int = Field(2_000, ge=50, le=60_000, description="wait for one answer of Redis")
    statement_timeout_ms: int = Field(15_000, ge=100, le=600_000, description="longest SQL statement")
    expiry_notice_hours: int = Field(24, ge=1, le=168, description="how long before its end a user is told of a coupon")
    archive_after_days: int = Field(400, ge=0, le=36_500, description="days after which an ended coupon is archived")
    settle_batch: int = Field(1_000, ge=1, le=5_000, description="claims settled in one transaction, at most")
    background_rate: int = Field(
        5_000,
        ge=0,
        le=10_000_000,
        description="coupons a second for campaigns, and for the expiry sweep, while claims come; 0: no limit",
    )
    batch_approval_above: int | None = Field(
        None,
        ge=0,
        le=1_000_000_000,
        description="users above which a batch waits for a second person; unset: none does",
    )
    approval_budgets: str | None = Field(
        None, description="JSON object, currency to minor units: what may cost more waits for a second person"
    )
    webhook_private: bool = Field(False, description="webhooks may lead to private and loopback addresses")
    shop: bool = Field(False, description="serves /shop, a storefront to click through: anybody is any user in it")
    message_channels: str | None = Field(None, description="channels to users: log, smtp, sms, separated by commas")
    message_language: str = Field("en", description="language of messages to users: en or zh")
    smtp_url: SecretStr | None = Field(None, description="mail server: smtp://, smtp+starttls:// or smtps://")
    mail_from: str | None = Field(None, description="sender of mail to users")
    sms_gateway: str = Field(
        "coupon_workers.notify.sms_channel:LoggedSms", description="module:factory of the sender of short messages"
    )
    risk_scorer: str | None = Field(None, description="module:factory of the scorer of accounts; unset: none")
    log_level: str = Field("INFO", description="DEBUG, INFO, WARNING or ERROR")
    log_format: str = Field("json", description="json, or console for people")
    crash_at: str | None = Field(None, description="kills the process at a named point: fault tests only")

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels to users that are in use."""
        return tuple(self.message_channels.split(",")) if self.message_channels else ()

    @property
    def budgets(self) -> dict[str, int]:
        """What a template or a batch may cost at worst without a second person, by currency."""
        budgets: dict[str, int] = json.loads(self.approval_budgets or "{}")
        return budgets

    @field_validator("code_pepper")
    @classmethod
    def _are_peppers(cls, ring: SecretStr | None) -> SecretStr | None:
        peppers = ring.get_secret_value().split(",") if ring else []
        if any(len(pepper.encode()) < SHORTEST_PEPPER or pepper != pepper.strip() for pepper in peppers):
            raise ValueError(f"each pepper must have at least {SHORTEST_PEPPER} bytes, and no spaces around it")
        if len(set(peppers)) < len(peppers):
            raise ValueError("names a pepper twice")
        return ring if peppers else None

    @field_validator("database_url")
    @classmethod
    def _is_postgres(cls, url: SecretStr | None) -> SecretStr | None:
        return _with_port(_with_scheme(url, {"postgresql", "postgres", "postgresql+psycopg2"}), _port_of_database)

    @field_validator("redis_url")
    @classmethod
    def _is_redis(cls, url: SecretStr | None) -> SecretStr | None:
        return _with_port(_with_scheme(url, {"redis", "rediss", "unix"}))

    @field_validator("broker_url")
    @classmethod
    def _is_broker(cls, url: SecretStr | None) -> SecretStr | None:
        return _with_port(_with_scheme(url, {"redis", "rediss", "unix", "amqp", "amqps"}))

    @field_validator("approval_budgets")
    @classmethod
    def _are_budgets(cls, text: str | None) -> str | None:
        try:
            budgets: Any = json.loads(text or "{}")
        except ValueError:
            budgets = None
        if not isinstance(budgets, dict) or not all(map(_is_budget, budgets.items())):
            raise ValueError('must be a JSON object, currency to minor units: {"CNY": 10000000}')
        return text or None

    @field_validator("message_channels")
    @classmethod
    def _are_channels(cls, names: str | None) -> str | None:
        wanted = list(dict.fromkeys(name.strip() for name in (names or "").split(",") if name.strip()))
        if set(wanted) - MESSAGE_CHANNELS:
            raise ValueError(f"must be some of {', '.join(sorted(MESSAGE_CHANNELS))}, separated by commas")
        return ",".join(wanted) or None

    @field_validator("message_language")
    @classmethod
    def _is_language(cls, name: str) -> str:
        if name not in {"en", "zh"}:
            raise ValueError("must be en or zh")
        return name

    @field_validator("smtp_url")
    @classmethod
    def _is_mail_server(cls, url: SecretStr | None) -> SecretStr | None:
        return _with_port(_with_scheme(url, {"smtp", "smtp+starttls", "smtps"}))

    @field_validator("archive_after_days")
    @classmethod
    def _is_long_after_the_gate(cls, days: int) -> int:
        if 0 < days < LEAST_ARCHIVE_DAYS:
            raise ValueError(f"must be 0 (never) or at least {LEAST_ARCHIVE_DAYS}")
        return days

    @field_validator("mail_from")
    @classmethod
    def _is_mail_address(cls, address: str | None) -> str | None:
        if address and not MAIL_ADDRESS.fullmatch(address):
            raise ValueError("must be a mail address, without a name: coupons@example.com")
        return address or None

    @field_validator("sms_gateway", "risk_scorer")
    @classmethod
    def _is_factory(cls, path: str | None) -> str | None:
        if path and not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", path):
            raise ValueError("must be module:factory")
        return path or None

    @field_validator("log_level")
    @classmethod
    def _is_level(cls, level: str) -> str:
        if level.upper() not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
            raise ValueError("must be DEBUG, INFO, WARNING or ERROR")
        return level.upper()

    @field_validator("log_format")
    @classmethod
    def _is_format(cls, name: str) -> str:
        if name not in {"json", "console"}:
            raise ValueError("must be json or console")
        return name

    @model_validator(mode="after")
    def _mail_has_a_server_and_a_sender(self) -> Settings:
        if "smtp" in self.channels and not (self.smtp_url and self.mail_from):
            raise ValueError(f"{PREFIX}MESSAGE_CHANNELS has smtp, which needs {PREFIX}SMTP_URL and {PREFIX}MAIL_FROM")
        return self

    @model_validator(mode="after")
    def _broker_is_not_the_stock(self) -> Settings:
        if self.redis_url and self.broker_url and self.redis_url == self.broker_url:
            raise ValueError(
                f"{PREFIX}BROKER_URL must not be {PREFIX}REDIS_URL: the broker's maintenance runs KEYS; "
                "give it a database or a server of its own"
            )
        return self


def _is_budget(item: tuple[object, object]) -> bool:
    currency, minor_units = item
    known = isinstance(currency, str) and currency in EXPONENTS
    return known and type(minor_units) is int and 0 <= minor_units < 2**53


def _with_scheme(url: SecretStr | None, schemes: set[str]) -> SecretStr | None:
    if url is None or not url.get_secret_value():
        return None
    text = url.get_secret_value()
    if text != text.strip():
        raise ValueError("must be a URL without spaces around it")
    if urlsplit(text).scheme not in schemes:
        raise ValueError(f"must be a URL that starts with one of {', '.join(sorted(schemes))}")
    return url


def _port(text: str) -> int | None:
    return urlsplit(text).port


def _port_of_database(text: str) -> int | None:
    # Here, since it is slow to import, and many a command needs no database.
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(text).port
    except ArgumentError as error:
        raise ValueError from error


def _with_port(url: SecretStr | None, port_of: Callable[[str], int | None] = _port) -> SecretStr | None:
    """What is no number is mostly a piece of a password, and is not repeated."""
    try:
        if url is not None:
            port_of(url.get_secret_value())
    except ValueError:
        raise ValueError(
            "has no number where its port should be; in a password @ is written %40, / %2F, ? %3F and # %23"
        ) from None
    return url


def read_settings() -> Settings:
    """Read the environment.

    Raises ``SettingsError`` whose message names every bad variable and what is wrong with it.
    """
    try:
        return Settings()
    except ValidationError as error:
        problems = [
            ": ".join(
                [
                    *(f"{PREFIX}{str(place).upper()}" for place in problem["loc"][:1]),
                    problem["msg"].removeprefix("Value error, "),
                ]
            )
            for problem in error.errors(include_input=False, include_url=False)
        ]
        raise SettingsError("; ".join(problems)) from None


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The settings of this process, read at first use and the same ever after."""
    return read_settings()
