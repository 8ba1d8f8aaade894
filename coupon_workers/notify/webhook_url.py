"""What a webhook's address may look like. Where it leads is looked at again at each message (guarded_network.py)."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from coupon_workers.notify.public_address import is_public

LONGEST_URL = 2_048

_LABEL = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,254}}\Z)(?:{_LABEL}\.)*{_LABEL}\.?")
_TEXT = re.compile(r"[!-~]+")
_LOCAL = ("localhost", ".localhost", ".local", ".internal")


def url_problem(url: str, *, allow_private: bool) -> str | None:
    """What is wrong with ``url``, or None. ``allow_private``: it may name this machine or a private address."""
    if not _TEXT.fullmatch(url) or len(url) > LONGEST_URL:
        return f"must be up to {LONGEST_URL} visible ASCII characters; names in other letters as xn--…"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https"):
        return "must begin with https:// or http://"
    if parts.username is not None or parts.password is not None:
        return "must hold no user and no password"
    if parts.fragment or "#" in url or "\\" in url:
        return "must have no fragment and no backslash"
    if port == 0:
        return "must name a port from 1 to 65535, or none"
    return _host_problem(host or "", allow_private)


def _host_problem(host: str, allow_private: bool) -> str | None:
    try:
        public = is_public(str(ip_address(host)))
    except ValueError:
        labels = host.rstrip(".").split(".")
        # A resolver takes 127.1, 0x7f.1 and 2130706433 for addresses.
        if not _HOST.fullmatch(host) or re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]):
            return "must name a host, or an address in its usual form"
        public = not f".{host.rstrip('.')}".endswith(_LOCAL)
    if public or allow_private:
        return None
    return "must not lead to a private, loopback or link-local address, unless COUPON_WEBHOOK_PRIVATE is true"
