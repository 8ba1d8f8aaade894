"""``coupon-workers codes`` against the run's servers; a thread plays the worker."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result

from coupon_workers.cli.main import main
from coupon_workers.codes.code_generation import generate_chunk
from coupon_workers.codes.code_sweep import sweep_codes
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from tests.support.sale import Sale, assert_sound, open_sale

Run = Callable[..., Result]
_NAMES = ("database_url", "redis_url", "broker_url", "code_pepper")


@pytest.fixture
def sale(services: Services) -> Sale:
    """A thousand units."""
    return open_sale(services, total_quantity=1_000)


@pytest.fixture
def run(settings: Settings, sale: Sale) -> Run:
    """Run ``coupon-workers codes`` with these words."""
    env = {f"COUPON_{name.upper()}": getattr(settings, name).get_secret_value() for name in _NAMES}

    def invoke(*words: str, given: str | None = None) -> Result:
        return CliRunner().invoke(main, ("codes", *words), env=env | {"COLUMNS": "200"}, input=given)

    return invoke


@pytest.fixture
def worker(services: Services) -> Iterator[None]:
    """Generates whatever waits, a little at a time."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            with services.engine.connect() as connection:
                rows = connection.exec_driver_sql("SELECT code_batch_id FROM code_batch WHERE status = 'generating'")
                waiting = list(rows.scalars())
            for code_batch_id in waiting:
                generate_chunk(services, code_batch_id, chunk=40)
            time.sleep(0.02)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.usefixtures("worker")
def test_codes_are_generated_fetched_and_looked_up(run: Run, sale: Sale) -> None:
    """The number alone on its line; the file once; what became of a code, without it in the shell's history."""
    made = run("generate", "--template", str(sale.template_id), "--quantity", "100", "--prefix", "vip", "--wait")
    number = made.stdout.splitlines()[0]
    fetched = run("fetch", number)
    again = run("fetch", number)
    codes = fetched.stdout.split()[1:]
    found = run("lookup", given=f"{codes[0]}\n")

    assert (0, 0, 1, 0) == (made.exit_code, fetched.exit_code, again.exit_code, found.exit_code), found.output
    assert f"batch {number} is done: 100 of 100 codes generated" in made.stdout
    assert (100, {"VIP"}) == (len(set(codes)), {code[:3] for code in codes})
    assert "fetched at" in again.stderr
    assert "unused" == json.loads(found.stdout.splitlines()[-1])["state"]


def test_a_batch_is_shown_and_revoked(run: Run, sale: Sale, services: Services) -> None:
    """Waiting for one that ends before it is done exits 1."""
    number = run("generate", "--template", str(sale.template_id), "--quantity", "100").stdout.strip()

    shown = json.loads(run("show", number, "--json").stdout)
    revoked = run("revoke", number)
    waited = run("show", number, "--wait")

    assert ("generating", 100) == (shown["status"], shown["reserved"])
    assert "is revoked" in revoked.stdout
    assert 1 == waited.exit_code
    assert 1_000 == sale.stock
    sweep_codes(services)
    assert_sound(services)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--quantity", "0"), "0 is not in the range"),
        (("--quantity", "2000"), "1000 are left"),
        (("--quantity", "900", "--length", "4"), "must be at most 0: 12167 such codes are possible, and longer ones"),
        (("--quantity", "5", "--prefix", "a b"), "letters, digits and dashes"),
        (("--quantity", "5", "--channel", "a,b"), "--channel"),
        (("--quantity", "5", "--expires-at", "tomorrow"), "RFC 3339"),
        (("--quantity", "5", "--expires-at", "2026-01-01T00:00:00Z"), "expires_at must lie in the future"),
    ],
)
def test_what_cannot_be_made_is_refused_in_one_line(
    run: Run, sale: Sale, words: tuple[str, ...], complaint: str
) -> None:
    """Nothing is set aside."""
    refused = run("generate", "--template", str(sale.template_id), *words)

    assert refused.exit_code in (1, 2)
    assert complaint in refused.stderr
    assert 1_000 == sale.stock
