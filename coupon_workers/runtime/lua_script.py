"""Lua scripts as files: read once, called by their SHA-1, loaded anew when a server does not know them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any

import redis
from redis.exceptions import ClusterDownError, NoScriptError, OutOfMemoryError, ReadOnlyError, RedisError

from coupon_workers.errors import StoreUnavailable

Value = str | int | bytes

SCRIPTS = Path(__file__).parents[2] / "lua"
"""The folder ``lua/`` stands beside the package, in a checkout as in an installation."""

_REFUSALS = (OutOfMemoryError, ReadOnlyError, ClusterDownError)
"""``ClusterDownError`` is ``MASTERDOWN`` too; a server that is loading has a ``ConnectionError``."""

_PART = re.compile(r"^ *-- part: (\w+)$", re.MULTILINE)


class LuaScript:
    """One file of ``lua/``: ``LuaScript("claim")`` is ``lua/claim.lua``.

    A line ``-- part: name`` of it stands for ``lua/part/name.lua``: what several scripts have in
    common. Raises ``FileNotFoundError`` when there is no such file.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.source = _PART.sub(lambda part: _read(f"part/{part[1]}"), _read(name))
        self.sha = sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    def __call__(self, client: redis.Redis, keys: Sequence[str], args: Sequence[Value] = ()) -> Any:
        """Run the script once.

        Raises ``StoreUnavailable`` when the server does not answer: whether the script ran is then unknown, and the
        caller asks again with the same arguments. An error of the script itself is raised as it is.
        """
        try:
            try:
                return client.evalsha(self.sha, len(keys), *keys, *args)
            except NoScriptError:
                return client.eval(self.source, len(keys), *keys, *args)
        except redis.ResponseError as error:
            if _is_refusal_of_the_server(error):
                raise StoreUnavailable("Redis", str(error)) from error
            raise
        except RedisError as error:
            raise StoreUnavailable("Redis", str(error)) from error


def _read(name: str) -> str:
    return (SCRIPTS / f"{name}.lua").read_text(encoding="utf-8")


def _is_refusal_of_the_server(error: redis.ResponseError) -> bool:
    """A full memory, a failing disk, a script that does not end, a replica or a server without its own: nothing was
    written, and it may pass.

    Of those that the client has a class for it cuts the first word off.
    """
    return isinstance(error, _REFUSALS) or str(error).startswith(("MISCONF", "NOREPLICAS", "BUSY "))


@cache
def lua_script(name: str) -> LuaScript:
    """The script of ``lua/<name>.lua``, read once a process."""
    return LuaScript(name)
