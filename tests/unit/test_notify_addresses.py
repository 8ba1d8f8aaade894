"""Where a webhook may lead: what its address says, and the address behind it."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from httpcore import ConnectError

from coupon_workers.notify import guarded_network
from coupon_workers.notify.guarded_network import AddressRefused, Deadline, GuardedBackend
from coupon_workers.notify.public_address import is_public
from coupon_workers.notify.webhook_url import url_problem

PRIVATE = [
    "127.0.0.1", "127.8.9.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
    "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "::1", "::", "fe80::1", "fe80::1%eth0",
    "fc00::1", "fec0::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
    "2001:0:7f00:1::", "2001:db8::1", "::127.0.0.1",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "203.0.114.1", "2606:4700::1111", "::ffff:8.8.8.8"]

NO_URLS = [
    "", "shop.example", "//shop.example", "ftp://shop.example/", "file:///etc/passwd", "gopher://shop.example",
    "javascript:alert(1)", "https://", "https:///x", "https://user@shop.example/", "https://user:pw@shop.example/",
    "https://:@shop.example/", "https://@shop.example/", "https://shop.example/#part", "https://shop.example:99999/",
    "https://shop.example:0/", "https://shop.example:x/", "https://shop.example/a b", "https://shop.example/\r\nX: y",
    "https://shöp.example/", "https://shop.example\\@evil.example/", "https://[::1/", "https://[zz]/",
    "https://shop..example/", "https://.example/", "https://sh(op.example/", "https://127.1/", "https://2130706433/",
    "https://0x7f.0.0.1/", "https://0177.0.0.1/", "https://0x7f000001/", "https://1.2.3.4.5/",
    "https://shop.example/" + "x" * 2_048, "https://" + "a" * 254 + ".example/",
]  # fmt: skip

LOCAL_URLS = [
    "http://localhost/", "http://LOCALHOST:80/", "http://localhost./", "http://a.localhost/", "http://db.internal/",
    "http://printer.local/", *(f"http://{address}/" for address in ("127.0.0.1", "10.1.2.3", "169.254.169.254")),
    "http://[::1]:8000/", "http://[::ffff:127.0.0.1]/", "http://[fe80::1]/",
]  # fmt: skip

URLS = [
    "https://shop.example", "http://shop.example:8080/hooks?a=1&b=%20", "https://xn--shp-sna.example/",
    "https://8.8.8.8/x", "https://[2606:4700::1111]:8443/", "https://under_score.example/", "https://shop.example./",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_inside_is_not_public(address: str) -> None:
    """Nor one that carries such an address in another's clothes."""
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    """Of either version."""
    assert is_public(address)


@pytest.mark.parametrize("url", NO_URLS)
def test_what_no_message_could_be_sent_to_is_refused(url: str) -> None:
    """Whatever the settings allow."""
    assert url_problem(url, allow_private=True)
    assert url_problem(url, allow_private=False)


@pytest.mark.parametrize("url", LOCAL_URLS)
def test_what_leads_inside_is_refused_unless_the_settings_allow_it(url: str) -> None:
    """Told when it is made, where its text says so already."""
    assert "private" in str(url_problem(url, allow_private=False))
    assert None is url_problem(url, allow_private=True)


@pytest.mark.parametrize("url", URLS)
def test_a_usual_address_is_taken(url: str) -> None:
    """Names, addresses, ports, queries."""
    assert None is url_problem(url, allow_private=False)


def _resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def getaddrinfo(_host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def test_a_name_that_leads_inside_is_not_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every address of it is looked at."""
    _resolving(monkeypatch, "10.0.0.1", "127.0.0.1")

    with pytest.raises(AddressRefused):
        GuardedBackend(Deadline(1), allow_private=False).connect_tcp("shop.example", 80)


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is not looked up again, and of its addresses only the public ones are tried."""
    _resolving(monkeypatch, "127.0.0.1", "8.8.8.8", "9.9.9.9")
    tried: list[str] = []

    class Sockets:
        def connect_tcp(self, host: str, *_: Any) -> None:
            tried.append(host)
            raise ConnectError("no")

    monkeypatch.setattr(guarded_network, "SyncBackend", Sockets)
    with pytest.raises(ConnectError):
        GuardedBackend(Deadline(1), allow_private=False).connect_tcp("shop.example", 80)

    assert ["8.8.8.8", "9.9.9.9"] == tried


def test_a_deadline_is_shared_by_all_that_is_done_before_it() -> None:
    """And begins anew when it is told to."""
    over, open_ = Deadline(0), Deadline(60)

    with pytest.raises(ConnectError):
        over.left_s(1, ConnectError)

    assert 1 == open_.left_s(1, ConnectError)
    assert 59 < open_.left_s(None, ConnectError) <= 60
