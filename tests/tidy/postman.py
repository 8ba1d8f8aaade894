"""Runs a Postman collection (v2.1) as far as ours go: variables, raw bodies, and scripts of two kinds of line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx

_STATUS = re.compile(r'pm\.test\("status", \(\) => pm\.response\.to\.have\.status\((\d+)\)\);')
_SET = re.compile(r'pm\.collectionVariables\.set\("(\w+)", pm\.response\.json\(\)\.(\w+)\);')


def run_collection(path: Path, **variables: str) -> list[str]:
    """The names of the requests that were made. Raises ``AssertionError`` for a status that a script does not want,
    and for a line of a script that this cannot run."""
    collection = json.loads(path.read_text(encoding="utf-8"))
    known = {each["key"]: each["value"] for each in collection["variable"]} | variables
    done = []
    with httpx.Client(headers={"Authorization": f"Bearer {known['key']}"}, timeout=30) as http:
        for item in collection["item"]:
            request = item["request"]
            response = http.request(
                request["method"],
                _filled(request["url"]["raw"], known),
                headers={header["key"]: _filled(header["value"], known) for header in request["header"]},
                content=_filled(request["body"]["raw"], known) if "body" in request else None,
            )
            _judge(item, response, known)
            done.append(item["name"])
    return done


def _judge(item: dict[str, Any], response: httpx.Response, known: dict[str, str]) -> None:
    for line in (line for event in item["event"] for line in event["script"]["exec"]):
        wanted, put = _STATUS.fullmatch(line), _SET.fullmatch(line)
        assert wanted or put, line
        if wanted:
            assert int(wanted[1]) == response.status_code, f"{item['name']}: {response.text}"
        if put:
            known[put[1]] = str(response.json()[put[2]])


def _filled(text: str, known: dict[str, str]) -> str:
    while "{{" in text:
        text = re.sub(r"\{\{(\w+)\}\}", lambda found: known[found[1]], text)
    return text
