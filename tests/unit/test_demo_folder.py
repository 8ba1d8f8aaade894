"""``coupon-workers demo`` keeps its temporary folder when somebody will want to look into it, and else removes it."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from coupon_workers.cli import demo
from coupon_workers.errors import CouponWorkersError


@pytest.mark.parametrize(
    ("end", "kept"),
    [
        (KeyError("a mistake of ours"), True),
        (CouponWorkersError("a rule is broken"), True),
        (KeyboardInterrupt(), False),
    ],
    ids=repr,
)
def test_data_and_logs_are_kept_when_something_is_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: BaseException, kept: bool
) -> None:
    """Also when nobody thought of it; they are named then. Whoever interrupts it leaves nothing."""

    def run_demo(*_: object) -> None:
        raise end

    monkeypatch.setattr(demo, "run_demo", run_demo)
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # this process is not the command's own
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    result = CliRunner().invoke(demo.demo)

    assert 0 != result.exit_code
    assert kept == any(tmp_path.iterdir())
    assert kept == (f"data and logs are in {tmp_path}" in result.output)
