"""Views that take a file, in a form or as their body: it is read before they run, and gone when they have answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from hashlib import sha256
from tempfile import TemporaryFile
from typing import Any, BinaryIO, TypeVar

from flask import current_app, request

from coupon_workers.errors import StoreUnavailable
from web.json_body import CHUNK_BYTES, JSON_TYPE, StrictRequest
from web.problem import ProblemError
from web.upload_form import MOST_FILE, MOST_UPLOAD, Upload, read_form

View = TypeVar("View", bound=Callable[..., Any])

FORM_TYPE = "multipart/form-data"
CSV_TYPE = "text/csv"

UPLOAD = "coupon_workers.upload"
"""Where the environment of a request holds its form, if it has one."""

_SPOOLED = "coupon_workers.spooled_body"
_STREAMED_TYPE = "__streamed_type__"


def takes_upload(view: View) -> View:
    """Let a view be sent a form with a file, beside JSON: ``uploaded()`` has it. Put it above ``idempotent``."""

    @wraps(view)
    def reading(*args: Any, **kwargs: Any) -> Any:
        if request.mimetype != FORM_TYPE:
            if request.mimetype != JSON_TYPE:
                raise ProblemError(415, "UNSUPPORTED_MEDIA_TYPE", f"the body must be {FORM_TYPE} or {JSON_TYPE}")
            return view(*args, **kwargs)
        return _with_upload(_read_form(), lambda: view(*args, **kwargs))

    setattr(reading, _STREAMED_TYPE, FORM_TYPE)
    return reading  # type: ignore[return-value]  # the same arguments and the same answers


def takes_csv(view: View) -> View:
    """Let the body of a view be a CSV file: ``uploaded()`` has it, without fields. Put it above ``idempotent``."""

    @wraps(view)
    def reading(*args: Any, **kwargs: Any) -> Any:
        if request.mimetype != CSV_TYPE:
            raise ProblemError(415, "UNSUPPORTED_MEDIA_TYPE", f"the body must be {CSV_TYPE}")
        return _with_upload(_read_file(), lambda: view(*args, **kwargs))

    setattr(reading, _STREAMED_TYPE, CSV_TYPE)
    return reading  # type: ignore[return-value]  # the same arguments and the same answers


def _with_upload(upload: Upload, answer: Callable[[], Any]) -> Any:
    request.environ[UPLOAD] = upload
    try:
        return answer()
    finally:
        upload.close()


def uploaded() -> Upload | None:
    """The form or the file of this request; None when it is JSON."""
    form: Upload | None = request.environ.get(UPLOAD)
    return form


def body_hash() -> str:
    """The SHA-256 of this request's body, in lower-case hex, for its signature.

    A form or file goes to a temporary file on the way, from which it is read afterwards: it is not taken before it is
    known whom it comes from. Raises ``ProblemError`` as reading the body does.
    """
    view = current_app.view_functions.get(request.endpoint or "")
    streamed: str | None = getattr(view, _STREAMED_TYPE, None)
    if streamed is None or request.mimetype != streamed:
        return sha256(request.get_data()).hexdigest()
    spooled = TemporaryFile()  # noqa: SIM115 - it lives as long as the request
    request.environ[_SPOOLED] = spooled
    return _spool(_strict().body_chunks(MOST_UPLOAD if streamed == FORM_TYPE else MOST_FILE), spooled).hex()


def _spool(chunks: Iterable[bytes], spooled: BinaryIO) -> bytes:
    """Write the chunks to a temporary file, which is then at its beginning; their SHA-256."""
    digest = sha256()
    for chunk in chunks:
        digest.update(chunk)
        try:
            spooled.write(chunk)
        except OSError as error:
            raise StoreUnavailable("the folder for temporary files", str(error)) from error
    spooled.seek(0)
    return digest.digest()


def _read_form() -> Upload:
    boundary = request.mimetype_params.get("boundary", "")
    if not (boundary.isascii() and 1 <= len(boundary) <= 70):  # RFC 2046, 5.1.1
        raise ProblemError(400, "MALFORMED_FORM", f"{FORM_TYPE} needs a boundary of 1 to 70 characters")
    return read_form(_body(MOST_UPLOAD), boundary)


def _read_file() -> Upload:
    file = TemporaryFile()  # noqa: SIM115 - it lives as long as the request
    try:
        return Upload(file=file, digest=_spool(_body(MOST_FILE), file))
    except BaseException:
        file.close()
        raise


def _body(limit: int) -> Iterable[bytes]:
    """The body, from where its signature has left it. Raises ``ProblemError`` as reading the body does."""
    spooled: BinaryIO | None = request.environ.pop(_SPOOLED, None)
    return _strict().body_chunks(limit) if spooled is None else _chunks(spooled)


def _chunks(spooled: BinaryIO) -> Iterator[bytes]:
    with spooled:
        while chunk := spooled.read(CHUNK_BYTES):
            yield chunk


def _strict() -> StrictRequest:
    # Flask's proxy stands for it.
    return request  # type: ignore[return-value]
