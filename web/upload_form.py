"""A form with a file (RFC 7578), read piece by piece: its fields into memory, its file into a temporary one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from tempfile import TemporaryFile
from typing import BinaryIO

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.sansio.multipart import Data, Epilogue, Event, Field, File, MultipartDecoder, NeedData

from coupon_workers.errors import StoreUnavailable
from coupon_workers.field_message import UNKNOWN
from web.json_body import MOST_BODY, too_large
from web.problem import ProblemError

FILE_FIELD = "file"

MOST_FILE = 64 * 1024 * 1024
"""Bytes of an uploaded file (API.md, Conventions: 64 MiB)."""

MOST_UPLOAD = MOST_FILE + MOST_BODY
"""Bytes of a body with a file: the file, and as much beside it as a body without one may have."""

MOST_PARTS = 32
"""No form of ours has as many fields."""

TWICE = "is given twice"


@dataclass(slots=True)
class Upload:
    """What a form held. ``digest`` is the SHA-256 of its fields and of its file's bytes, however they were spelt.

    ``errors`` are of the form itself: pairs of a field and what is wrong with it. Whoever gets one closes its file.
    """

    fields: dict[str, str] = field(default_factory=dict)
    file: BinaryIO | None = None
    file_name: str = ""
    errors: list[tuple[str, str]] = field(default_factory=list)
    digest: bytes = b""

    def close(self) -> None:
        """Give the file's space back."""
        if self.file is not None:
            self.file.close()


def read_form(chunks: Iterable[bytes], boundary: str) -> Upload:
    """The form that a body spells.

    Raises ``ProblemError``: 400 ``MALFORMED_FORM``; 413 for a file over 64 MiB, or fields over 1 MiB.
    """
    reader = _FormReader(boundary)
    try:
        for chunk in chunks:
            reader.feed(chunk)
        reader.feed(None)
    except RequestEntityTooLarge:
        reader.upload.close()
        raise too_large(MOST_BODY, f"a form of {MOST_PARTS} fields at most, without its file,") from None
    except ValueError:
        reader.upload.close()
        raise ProblemError(400, "MALFORMED_FORM", "the body is not a whole form of multipart/form-data") from None
    except BaseException:
        reader.upload.close()
        raise
    return reader.finished()


class _FormReader:
    def __init__(self, boundary: str) -> None:
        self.upload = Upload()
        self._decoder = MultipartDecoder(boundary.encode(), max_form_memory_size=MOST_BODY, max_parts=MOST_PARTS)
        self._take: Callable[[bytes], None] = _nothing
        self._end: Callable[[], None] = _nothing_more
        self._field_bytes = 0
        self._file_bytes = 0
        self._file_hash = sha256()

    def feed(self, chunk: bytes | None) -> None:
        """Go on with the next bytes; None: there are no more."""
        self._decoder.receive_data(chunk)
        event = self._decoder.next_event()
        while not isinstance(event, NeedData | Epilogue):
            self._handle(event)
            event = self._decoder.next_event()

    def finished(self) -> Upload:
        """What was read, its file at its beginning."""
        spelt = json.dumps(self.upload.fields, sort_keys=True, separators=(",", ":"))
        has_file = self.upload.file is not None
        self.upload.digest = sha256(spelt.encode() + (self._file_hash.digest() if has_file else b"")).digest()
        if self.upload.file is not None:
            self.upload.file.seek(0)
        return self.upload

    def _handle(self, event: Event) -> None:
        if isinstance(event, File):
            self._begin_file(event.name or "", event.filename)
        elif isinstance(event, Field):
            self._begin_field(event.name or "")
        elif isinstance(event, Data):
            self._take(event.data)
            if not event.more_data:
                self._end()

    def _begin_field(self, name: str) -> None:
        parts: list[bytes] = []

        def take(data: bytes) -> None:
            self._field_bytes += len(data)
            if self._field_bytes > MOST_BODY:
                raise RequestEntityTooLarge
            parts.append(data)

        self._take, self._end = take, lambda: self._add_field(name, b"".join(parts))

    def _add_field(self, name: str, value: bytes) -> None:
        text = _text(value)
        if name == FILE_FIELD:
            self._refuse(name, "must be a file: a part with a file name")
        elif name in self.upload.fields:
            self._refuse(name, TWICE)
        elif text is None or "\x00" in name:
            self._refuse(name, "must be text in UTF-8, without U+0000")
        else:
            self.upload.fields[name] = text

    def _begin_file(self, name: str, file_name: str) -> None:
        self._take, self._end = _nothing, _nothing_more
        if name != FILE_FIELD:
            self._refuse(name, UNKNOWN if name not in self.upload.fields else TWICE)
        elif self.upload.file is not None:
            self._refuse(name, TWICE)
        else:
            with _disk():
                self.upload.file = TemporaryFile()  # noqa: SIM115 - it lives as long as the request
            self.upload.file_name = file_name
            self._take = self._write

    def _write(self, data: bytes) -> None:
        assert self.upload.file is not None
        self._file_bytes += len(data)
        if self._file_bytes > MOST_FILE:
            raise too_large(MOST_FILE, "a file")
        self._file_hash.update(data)
        with _disk():
            self.upload.file.write(data)

    def _refuse(self, name: str, message: str) -> None:
        if (name, message) not in self.upload.errors:
            self.upload.errors.append((name, message))


@contextmanager
def _disk() -> Iterator[None]:
    """A disk that is full is for the operator; the client asks again."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable("the folder for temporary files", str(error)) from error


def _text(value: bytes) -> str | None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _nothing(data: bytes) -> None:
    pass


def _nothing_more() -> None:
    pass
