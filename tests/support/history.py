"""The history of a load: a line before each question is sent, and a line after its answer is heard.

One JSON object a line. What was begun and never ended is as unknown as what ended with a lost connection.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal

Heard = Literal["ok", "refused", "unknown"]
"""``ok``: a 2xx. ``refused``: any other status. ``unknown``: no answer, so nobody can say what happened."""

STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
"""The code of a 503 that says as little as a lost answer: the question may have been carried out."""

Request = tuple[str, str, str]
"""Template, user, request id."""


@dataclass(slots=True)
class Operation:
    """One question. Times are monotonic seconds; ``heard_s`` is infinite for what was never answered.

    ``name``: ``claim``, ``wrong`` (a claim with a bad body), ``status`` (of a claim), ``admin``.
    """

    name: str
    args: dict[str, Any]
    sent_s: float
    heard: Heard = "unknown"
    heard_s: float = float("inf")
    status: int = 0
    answer: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def request(self) -> Request:
        """Whose effect a claim is; a claim only."""
        return self.args["template_id"], self.args["user_id"], self.args["request_id"]

    @property
    def code(self) -> str:
        """The ``code`` of a problem, else an empty text."""
        return str(self.answer.get("code", "")) if isinstance(self.answer, dict) else ""

    @property
    def claim_id(self) -> int:
        """The claim an ``ok`` answer names, else 0."""
        named = self.answer.get("claim_id") if self.heard == "ok" and isinstance(self.answer, dict) else None
        return int(named) if named else 0

    @property
    def state(self) -> str:
        """``queued``, ``issued`` or ``rejected`` of an ``ok`` answer, else an empty text."""
        return str(self.answer.get("status", "")) if self.heard == "ok" and isinstance(self.answer, dict) else ""

    @property
    def may_have_happened(self) -> bool:
        """Whether a claim with this answer may have taken a unit all the same."""
        return self.heard == "unknown" or self.code == STORE_UNAVAILABLE


class History:
    """Writes the lines of any number of clients into ``path``, in the order in which they happen."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("w", encoding="utf-8")
        self._numbers = count(1)
        self._lock = threading.Lock()
        self.answers = 0

    def sends(self, name: str, args: dict[str, Any]) -> int:
        """Write that a question is about to be sent; its number."""
        number = next(self._numbers)
        self._write({"op": number, "at": time.monotonic(), "type": "sent", "name": name, "args": args})
        return number

    def hears(self, number: int, status: int, answer: Any, headers: dict[str, str]) -> None:
        """Write the answer to a question; ``status`` 0: there was none."""
        heard: Heard = "unknown" if status == 0 else "ok" if 200 <= status < 300 else "refused"
        line = {"op": number, "at": time.monotonic(), "type": heard, "status": status}
        self._write(line | {"answer": answer, "headers": headers})
        with self._lock:
            self.answers += 1

    def close(self) -> None:
        """End the file."""
        self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, separators=(",", ":")) + "\n"
        with self._lock:
            self._file.write(text)
            self._file.flush()  # a history that dies with its writer proves nothing


def read_history(path: Path) -> list[Operation]:
    """Every operation, in the order in which they were sent."""
    operations: dict[int, Operation] = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        if line["type"] == "sent":
            operations[line["op"]] = Operation(line["name"], line["args"], line["at"])
            continue
        operation = operations[line["op"]]
        operation.heard, operation.heard_s, operation.status = line["type"], line["at"], line["status"]
        operation.answer, operation.headers = line["answer"], line["headers"]
    return list(operations.values())
