"""Which IP addresses a webhook may lead to: an endpoint is named from outside, and must not reach what is inside."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_UNICAST = IPv6Network("2000::/3")
"""What the world routes; translations of IPv4 (64:ff9b::/96) and everything local lie elsewhere."""

_EMBEDDING = (IPv6Network("2001::/32"), IPv6Network("2002::/16"))
"""Teredo and 6to4: they carry an IPv4 address, which may be any."""


def is_public(address: str) -> bool:
    """Whether ``address`` is one of the internet's: not private, loopback, link-local, shared or multicast.

    Raises ``ValueError`` for what is no address.
    """
    parsed: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return is_public(str(parsed.ipv4_mapped))
        if parsed not in _UNICAST or any(parsed in network for network in _EMBEDDING):
            return False
    return parsed.is_global and not parsed.is_multicast
