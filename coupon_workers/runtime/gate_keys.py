"""The Redis keys that every gate has: what decides a claim or a draw, and what a preheat builds beside it."""

from __future__ import annotations

from abc import ABC, abstractmethod


class GateKeys(ABC):
    """The keys of one gate; all share one hash tag, so that one script may touch them all on a Redis Cluster too.

    What the hashes and streams hold is said by the script that decides: ``lua/claim.lua``, ``lua/draw.lua``.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def tag(self) -> str:
        """What stands between the braces of each key."""

    def _key(self, name: str) -> str:
        return f"cw:{{{self.tag}}}:{name}"

    @property
    def meta(self) -> str:
        """Hash: version, status, window, limits and the like, as the last change brought them."""
        return self._key("meta")

    @property
    def generation(self) -> str:
        """String: set last by the preheat; absent when the data is not whole."""
        return self._key("generation")

    @property
    def stock(self) -> str:
        """What may still be taken."""
        return self._key("stock")

    @property
    def takers(self) -> str:
        """Hash: what each user has had."""
        return self._key("takers")

    @property
    def requests(self) -> str:
        """Hash ``<user> <request id>`` → how the request was answered."""
        return self._key("requests")

    @property
    def pending(self) -> str:
        """Stream of what was accepted and is not settled."""
        return self._key("pending")

    @property
    def bell(self) -> str:
        """String with a short life: a doorbell has been rung and a drain is due or at work."""
        return self._key("bell")

    @property
    def told(self) -> str:
        """String: the newest version a cold gate was told of; a build from an older one must not open it."""
        return self._key("told")

    @property
    def mending(self) -> str:
        """String with a short life: a rebuild was asked for because the gate accepted what it should have refused."""
        return self._key("mending")

    @property
    def day_prefix(self) -> str:
        """Prefix of the hashes user → count of one local day: ``…:day:<days since 1970-01-01>``."""
        return self._key("day:")

    @property
    def rate_prefix(self) -> str:
        """Prefix of the strings that hold the instant, in microseconds, up to which a user's rate is used up."""
        return self._key("rate:")

    def shadow(self, name: str) -> str:
        """The key under which a preheat builds ``name`` before it takes the live key's place."""
        return self._key(f"shadow:{name}")
