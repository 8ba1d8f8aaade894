"""The surprises. Expected refusals are values (see ``claiming/outcome.py``); these are raised.

One shallow tree; a class's docstring is its message.
"""

from __future__ import annotations


class CouponWorkersError(Exception):
    """Something unexpected happened in Coupon Workers."""

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(detail or (type(self).__doc__ or "").splitlines()[0])


class SettingsError(CouponWorkersError):
    """A setting has a value that cannot work."""


class StoreUnavailable(CouponWorkersError):  # noqa: N818 - the word of HTTP 503, which it becomes
    """A server this needs did not answer: nothing is known of what it did."""

    def __init__(self, store: str, detail: str | None = None) -> None:
        self.store = store
        super().__init__(detail or f"{store} did not answer")


class NotFound(CouponWorkersError):  # noqa: N818 - the word of HTTP 404, which it becomes
    """There is no such thing."""

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        super().__init__(detail)


class Conflict(CouponWorkersError):  # noqa: N818 - the word of HTTP 409, which it becomes
    """The thing's present state does not allow this."""

    def __init__(self, code: str, detail: str, **evidence: object) -> None:
        self.code = code
        self.evidence = evidence
        super().__init__(detail)


class Busy(Conflict):
    """Others have the thing in hand at this moment. Nothing was done, and the same request may do better."""


class Gone(CouponWorkersError):  # noqa: N818 - the word of HTTP 410, which it becomes
    """The thing was there and has been taken away for good."""

    def __init__(self, code: str, detail: str, **evidence: object) -> None:
        self.code = code
        self.evidence = evidence
        super().__init__(detail)


class TooManyTries(CouponWorkersError):  # noqa: N818 - the word of HTTP 429, which it becomes
    """Too many wrong tries: the next one is heard after ``wait_ms``."""

    def __init__(self, wait_ms: int) -> None:
        self.wait_ms = wait_ms
        super().__init__()


class InvalidInput(CouponWorkersError):  # noqa: N818 - the word of HTTP 422, which it becomes
    """The input breaks a rule; ``errors`` names each field with its message."""

    def __init__(self, errors: list[tuple[str, str]]) -> None:
        self.errors = errors
        super().__init__("; ".join(f"{field}: {message}" for field, message in errors))


class Overtaken(CouponWorkersError):  # noqa: N818 - it says what happened
    """Another request changed the same thing first: it is read again, and answered as it is now."""


class AudienceFileError(InvalidInput):
    """A campaign's file cannot be read, whatever its rows hold; ``code`` says why, for programs."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__([("file", message)])


class StatementRowsError(InvalidInput):
    """Rows of a statement break a rule; ``errors`` names the first ones, ``count`` is how many there are."""

    def __init__(self, errors: list[tuple[str, str]], count: int) -> None:
        self.count = count
        super().__init__(errors)


class CapacityError(InvalidInput):
    """So many codes of this form would be easy to guess: of ``space`` possible ones, ``allowed`` may still be made."""

    def __init__(self, space: int, allowed: int) -> None:
        self.space, self.allowed = space, allowed
        message = f"must be at most {allowed}: {space} such codes are possible, and longer ones are harder to guess"
        super().__init__([("quantity", message)])


class ServerTooOld(CouponWorkersError):  # noqa: N818 - it says what it is
    """A server is of an older version than the statements it is to carry out."""


class EmbeddedServerError(CouponWorkersError):
    """An embedded server could not be started or stopped."""


class ClockWentBack(CouponWorkersError):  # noqa: N818 - it says what happened
    """The clock stepped back further than identities can bridge."""


class WorkerNumbersExhausted(CouponWorkersError):  # noqa: N818 - it says what happened
    """Every Snowflake worker number is leased to a living process."""
