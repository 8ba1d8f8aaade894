"""Stands in for curl where documents are run: what they use of it, on any machine, and nothing else.

A script by itself: ``python curl_stand_in.py [-s] [-i] [-X METHOD] [-H HEADER]… [--json BODY|@-] URL``.
"""

from __future__ import annotations

import argparse
import sys
import urllib.error
import urllib.request

TIMEOUT_S = 30


def main(words: list[str]) -> None:
    """Send the request and write the answer out, whatever its status, as curl does."""
    parser = argparse.ArgumentParser(prog="curl", allow_abbrev=False)
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-i", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("--json", dest="body")
    parser.add_argument("url")
    asked = parser.parse_args(words)
    body = sys.stdin.read() if asked.body == "@-" else asked.body
    request = urllib.request.Request(asked.url, body.encode() if body is not None else None, method=asked.method)
    if body is not None:
        request.add_header("Content-Type", "application/json")
        request.add_header("Accept", "application/json")
    for header in asked.headers:
        name, _, value = header.partition(":")
        request.add_header(name, value.strip())
    with _answer(request) as response:
        if asked.i:
            sys.stdout.write(f"HTTP/1.1 {response.status} {response.reason}\n{response.headers}")
        sys.stdout.write(response.read().decode())


def _answer(request: urllib.request.Request) -> urllib.error.HTTPError:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        answer: urllib.error.HTTPError = opener.open(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        return error
    return answer


if __name__ == "__main__":
    main(sys.argv[1:])
