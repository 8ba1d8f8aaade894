"""Every Redis key of lotteries, spelt here and nowhere else; those of one share the hash tag ``{l<id>}``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LotteryKeys:
    """The keys of one lottery."""

    lottery_id: int

    def _key(self, name: str) -> str:
        return f"cw:{{l{self.lottery_id}}}:{name}"

    @property
    def meta(self) -> str:
        """Hash: version, status, window, limits, weights, prizes (``lua/draw.lua``)."""
        return self._key("meta")

    @property
    def generation(self) -> str:
        """String: set last by the preheat; absent when the data is not whole."""
        return self._key("generation")

    @property
    def stock(self) -> str:
        """Hash prize number → how many may still be won."""
        return self._key("stock")

    @property
    def takers(self) -> str:
        """Hash user → draws."""
        return self._key("takers")

    @property
    def requests(self) -> str:
        """Hash ``<user> <request id>`` → ``<draw id> <prize no> <state>``; state: queued, settled, or a reason."""
        return self._key("requests")

    @property
    def pending(self) -> str:
        """Stream of accepted draws that are not settled: fields c, u, r, p, t, d (``lua/draw.lua``)."""
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
        """String with a short life: a rebuild was asked for."""
        return self._key("mending")

    @property
    def day_prefix(self) -> str:
        """Prefix of the hashes user → draws of one local day: ``…:day:<days since 1970-01-01>``."""
        return self._key("day:")

    @property
    def rate_prefix(self) -> str:
        """Prefix of the strings that hold the instant, in microseconds, up to which a user's rate is used up."""
        return self._key("rate:")

    def shadow(self, name: str) -> str:
        """The key under which a preheat builds ``name`` before it takes the live key's place."""
        return self._key(f"shadow:{name}")
