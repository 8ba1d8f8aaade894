"""Network addresses as limits and rules count them."""

from __future__ import annotations

import ipaddress

NETWORK_V6 = 64
"""A customer of IPv6 has as many addresses as he likes, in one network of this length."""


def network_of(ip: str) -> str:
    """The address, or for IPv6 its network. Raises ``ValueError`` for what is no address."""
    address = ipaddress.ip_address(ip)
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), NETWORK_V6), strict=False).network_address)


def counted_ip(ip: str) -> str:
    """As ``network_of``, and what is no address as it is: whoever sends nonsense is counted by it."""
    if ":" not in ip:
        return ip  # one of IPv4 has one spelling, and nearly all are
    try:
        return network_of(ip)
    except ValueError:
        return ip
