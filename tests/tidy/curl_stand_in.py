"""Stands in for curl where documents are run: what they use of it, on any machine, and nothing else.

A script by itself::

    python curl_stand_in.py [-s] [-i] [-X METHOD] [-H HEADER]… [--json BODY|@-] [-F NAME=VALUE|NAME=@FILE]… [-T FILE|-]
        URL
"""

from __future__ import annotations

import argparse
import sys
import urllib.error
import urllib.request
from pathlib import Path

TIMEOUT_S = 30
BOUNDARY = "of-a-document"


def main(words: list[str]) -> None:
    """Send the request and write the answer out, whatever its status, as curl does."""
    parser = argparse.ArgumentParser(prog="curl", allow_abbrev=False)
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-i", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("--json", dest="body")
    parser.add_argument("-F", dest="form", action="append", default=[])
    parser.add_argument("-T", dest="upload")
    parser.add_argument("url")
    asked = parser.parse_args(words)
    body = sys.stdin.read() if asked.body == "@-" else asked.body
    request = urllib.request.Request(asked.url, body.encode() if body is not None else None, method=asked.method)
    if body is not None:
        request.add_header("Content-Type", "application/json")
        request.add_header("Accept", "application/json")
    if asked.upload:
        request.data = sys.stdin.buffer.read() if asked.upload == "-" else Path(asked.upload).read_bytes()
        request.method = asked.method or "PUT"
    if asked.form:
        request.data = _form(asked.form)
        request.add_header("Content-Type", f"multipart/form-data; boundary={BOUNDARY}")
    for header in asked.headers:
        name, _, value = header.partition(":")
        request.add_header(name, value.strip())
    with _answer(request) as response:
        if asked.i:
            sys.stdout.write(f"HTTP/1.1 {response.status} {response.reason}\n{response.headers}")
        sys.stdout.write(response.read().decode())


def _form(fields: list[str]) -> bytes:
    parts = []
    for field in fields:
        name, _, value = field.partition("=")
        path = Path(value[1:]) if value.startswith("@") else None
        file = f'; filename="{path.name}"' if path else ""
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
        parts.append(head.encode() + (path.read_bytes() if path else value.encode()) + b"\r\n")
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def _answer(request: urllib.request.Request) -> urllib.error.HTTPError:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        answer: urllib.error.HTTPError = opener.open(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        return error
    return answer


if __name__ == "__main__":
    main(sys.argv[1:])
