"""Rules of routing that cost little to make: how an address is put together is compiled when it is first asked for.

Of the addresses of an application few are ever put together, and compiling for all of them is most of its start.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from werkzeug.routing import Rule

Builder = Callable[..., tuple[str, str]]


class LateRule(Rule):
    """A rule like any other. Should werkzeug compile under another name one day, that happens at once again."""

    def _compile_builder(self, append_unknown: bool = True) -> Builder:
        compiled: Callable[[], Builder] = cache(partial(super()._compile_builder, append_unknown))

        def build(rule: Rule, /, **values: Any) -> tuple[str, str]:
            return compiled()(rule, **values)

        return build
