"""Backup and restore as docs/operations.md tells them, with PostgreSQL's own programs, into servers that are new."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg2
import pytest

from coupon_workers.embedded.postgres import EmbeddedPostgres
from coupon_workers.embedded.postgres_binaries import postgres_binaries
from coupon_workers.embedded.servers import DATABASE_URL, EmbeddedServers
from coupon_workers.embedded.system_user import user_for
from tests.support.http_system import COMMAND, System, eventually

TIMEOUT_S = 120
USERS = 60


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[System]:
    """An installation of its own: this one is stopped, copied and lost."""
    system = System(tmp_path / "old")
    try:
        system.start()
        yield system
    finally:
        system.close()


def run(*words: str | Path, **environ: str) -> str:
    """A program of PostgreSQL or of ours, to its end; what it printed."""
    done = subprocess.run(
        [str(word) for word in words],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert 0 == done.returncode, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


def program(name: str) -> Path:
    """One of PostgreSQL's, of the version that runs."""
    return postgres_binaries(None) / name


def database_of(system: System) -> str:
    """Its address, as PostgreSQL's programs take it."""
    [url] = [line for line in system.command("env", "--urls").stdout.splitlines() if DATABASE_URL in line]
    return url.partition("=")[2].strip("'\"").replace("+psycopg2", "")


def sell(shop: System) -> tuple[str, dict[str, str]]:
    """A template of which every user has one coupon but for forty that are left; user → claim."""
    template_id = shop.desk.open(total_quantity=USERS + 40, per_user_limit=1)
    claims = {f"u{number}": shop.front.claimed(template_id, f"u{number}") for number in range(USERS)}
    assert {"issued"} == {end["status"] for end in shop.ends(claims.values())}
    return template_id, claims


def assert_goes_on(shop: System, template_id: str, claims: dict[str, str]) -> None:
    """Old requests are known, limits hold, what is left is left, nothing more; and every rule holds."""
    shop.start()
    assert claims == {user: shop.front.claim(template_id, user).ok(200)["claim_id"] for user in claims}
    for user in claims:
        shop.front.claim(template_id, user, "another").problem(409, "LIMIT_REACHED")
    new = [shop.front.claim(template_id, f"new{number}") for number in range(41)]
    assert [202] * 40 + [409] == [reply.status for reply in new]
    assert {"issued"} == {end["status"] for end in shop.ends(reply.json["claim_id"] for reply in new[:40])}
    shop.assert_sound()


def test_a_dump_is_restored_into_servers_that_are_new(shop: System, tmp_path: Path) -> None:
    """Taken while it runs; the Redis beside it is new and empty, and is filled from the database. Half a dump before
    it leaves nothing, and one more after it changes nothing."""
    template_id, claims = sell(shop)
    dump = tmp_path / "coupon.dump"

    run(program("pg_dump"), "--format=custom", f"--file={dump}", database_of(shop))
    shop.front.claimed(template_id, "after-the-dump")  # is not in it
    cut = tmp_path / "cut.dump"
    cut.write_bytes(dump.read_bytes()[: -dump.stat().st_size // 10])

    restored = System(tmp_path / "new")
    with EmbeddedServers(restored.data_dir, durable=False) as servers:
        urls = servers.urls()
        address = urls[DATABASE_URL].replace("+psycopg2", "")
        restore = [program("pg_restore"), "--no-owner", "--single-transaction", f"--dbname={address}"]
        assert 0 != subprocess.run([*restore, cut], capture_output=True, check=False).returncode
        run(*restore, dump)
        assert 0 != subprocess.run([*restore, dump], capture_output=True, check=False).returncode
        for words in (["migrate"], ["preheat", "--all"], ["check"]):
            run(*COMMAND, *words, **urls)
    try:
        assert_goes_on(restored, template_id, claims)
    finally:
        restored.close()


def test_a_stopped_data_folder_is_copied_as_it_is(shop: System, tmp_path: Path) -> None:
    """Owners and all: PostgreSQL's files belong to its own user where root has started it."""
    template_id, claims = sell(shop)
    shop.tell_to_stop()
    assert 0 == shop.wait_for_end()

    copied = System(tmp_path / "copy")
    copied.data_dir.parent.mkdir()
    run("cp", "-a", shop.data_dir, copied.data_dir)

    try:
        assert_goes_on(copied, template_id, claims)
    finally:
        copied.close()


def test_a_redis_that_was_lost_is_filled_by_hand(shop: System) -> None:
    """Before the sweep has come, or where no scheduler runs."""
    template_id, claims = sell(shop)
    shop.redis.flushall()

    told = shop.command("preheat", "--all")

    assert (0, f"1 template warm, {USERS} coupons loaded\n") == (told.returncode, told.stdout)
    assert claims == {user: shop.front.claim(template_id, user).ok(200)["claim_id"] for user in claims}
    shop.assert_sound()


class Archived:
    """A PostgreSQL that hands on its write-ahead log, as whoever bears no loss runs it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.log = folder / "log"
        self.log.mkdir()

    def make(self) -> EmbeddedPostgres:
        """Made once, so that its configuration can be written, and ready to be started."""
        with EmbeddedPostgres(self._folder / "first") as server:
            owner = user_for(server.data_dir)
        if owner:
            for folder in (self._folder, self.log):
                os.chown(folder, owner.uid, owner.gid)
        with (server.data_dir / "postgresql.conf").open("a") as configuration:
            configuration.write(f"archive_mode = on\narchive_command = 'cp %p \"{self.log}/%f\"'\n")
        return server

    def recovered(self, base: Path, until: str) -> EmbeddedPostgres:
        """From a base backup, as of an instant."""
        with (base / "postgresql.conf").open("a") as configuration:
            configuration.write(
                f"archive_mode = off\nrestore_command = 'cp \"{self.log}/%f\" %p'\n"
                f"recovery_target_time = '{until}'\nrecovery_target_action = 'promote'\n"
            )
        (base / "recovery.signal").touch()
        return EmbeddedPostgres(base)


def ask(server: EmbeddedPostgres, statement: str) -> str:
    """One value of its database, as text."""
    connection = psycopg2.connect(server.url.replace("+psycopg2", ""))
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return str(cursor.fetchone()[0]) if cursor.description else ""
    finally:
        connection.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that PostgreSQL's own user can reach: where root runs the tests, theirs is closed to others."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_an_archived_log_leads_back_to_the_moment_before_the_mistake(open_folder: Path) -> None:
    """A base backup, what was committed after it, and not the mistake."""
    archived = Archived(open_folder)
    base = open_folder / "base"
    with archived.make() as server:
        run(*COMMAND, "migrate", **{DATABASE_URL: server.url})
        address = server.url.replace("+psycopg2", "")
        run(program("pg_basebackup"), f"--dbname={address}", f"--pgdata={base}", "--checkpoint=fast")
        run(*COMMAND, "keys", "create", "--name", "kept", "--scope", "ops", **{DATABASE_URL: server.url})
        before = ask(server, "SELECT clock_timestamp()")
        ask(server, "DELETE FROM api_key")
        segment = ask(server, "SELECT pg_walfile_name(pg_switch_wal())")
        eventually(lambda: (archived.log / segment).exists())
    owner = user_for(server.data_dir)
    if owner:
        run("chown", "-R", f"{owner.uid}:{owner.gid}", base)

    with archived.recovered(base, before) as recovered:
        eventually(lambda: ask(recovered, "SELECT pg_is_in_recovery()") == "False")

        assert "kept" == ask(recovered, "SELECT name FROM api_key")
        assert (
            "schema 00"
            in subprocess.run(
                [*COMMAND, "migrate"],
                env={**os.environ, DATABASE_URL: recovered.url},
                capture_output=True,
                text=True,
                check=True,
            ).stderr
        )
