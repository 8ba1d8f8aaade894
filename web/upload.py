"""Views that take a file: the form is read before they run, and its file is gone when they have answered."""

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
from web.upload_form import MOST_UPLOAD, Upload, read_form

View = TypeVar("View", bound=Callable[..., Any])

FORM_TYPE = "multipart/form-data"

UPLOAD = "coupon_workers.upload"
"""Where the environment of a request holds its form, if it has one."""

_SPOOLED = "coupon_workers.spooled_body"
_TAKES_UPLOAD = "__takes_upload__"


def takes_upload(view: View) -> View:
    """Let a view be sent a form with a file, beside JSON: ``uploaded()`` has it. Put it above ``idempotent``."""

    @wraps(view)
    def reading(*args: Any, **kwargs: Any) -> Any:
        if not _is_form():
            if request.mimetype != JSON_TYPE:
                raise ProblemError(415, "UNSUPPORTED_MEDIA_TYPE", f"the body must be {FORM_TYPE} or {JSON_TYPE}")
            return view(*args, **kwargs)
        form = _read_form()
        request.environ[UPLOAD] = form
        try:
            return view(*args, **kwargs)
        finally:
            form.close()

    setattr(reading, _TAKES_UPLOAD, True)
    return reading  # type: ignore[return-value]  # the same arguments and the same answers


def uploaded() -> Upload | None:
    """The form of this request; None when it is JSON."""
    form: Upload | None = request.environ.get(UPLOAD)
    return form


def body_hash() -> str:
    """The SHA-256 of this request's body, in lower-case hex, for its signature.

    A form goes to a temporary file on the way, from which it is read afterwards: it is not taken before it is known
    whom it comes from. Raises ``ProblemError`` as reading the body does.
    """
    view = current_app.view_functions.get(request.endpoint or "")
    if not _is_form() or not getattr(view, _TAKES_UPLOAD, False):
        return sha256(request.get_data()).hexdigest()
    digest, spooled = sha256(), TemporaryFile()  # noqa: SIM115 - it lives as long as the request
    request.environ[_SPOOLED] = spooled
    for chunk in _strict().body_chunks(MOST_UPLOAD):
        digest.update(chunk)
        try:
            spooled.write(chunk)
        except OSError as error:
            raise StoreUnavailable("the folder for temporary files", str(error)) from error
    spooled.seek(0)
    return digest.hexdigest()


def _read_form() -> Upload:
    boundary = request.mimetype_params.get("boundary", "")
    if not (boundary.isascii() and 1 <= len(boundary) <= 70):  # RFC 2046, 5.1.1
        raise ProblemError(400, "MALFORMED_FORM", f"{FORM_TYPE} needs a boundary of 1 to 70 characters")
    spooled: BinaryIO | None = request.environ.pop(_SPOOLED, None)
    chunks: Iterable[bytes] = _strict().body_chunks(MOST_UPLOAD) if spooled is None else _chunks(spooled)
    return read_form(chunks, boundary)


def _chunks(spooled: BinaryIO) -> Iterator[bytes]:
    with spooled:
        while chunk := spooled.read(CHUNK_BYTES):
            yield chunk


def _is_form() -> bool:
    return request.mimetype == FORM_TYPE


def _strict() -> StrictRequest:
    # Flask's proxy stands for it.
    return request  # type: ignore[return-value]
