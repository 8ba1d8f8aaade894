"""The command line's keys, queues and migration, against the run's servers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import redis
from click.testing import CliRunner, Result
from sqlalchemy import Engine, text

from coupon_workers.access.api_key import verify_key
from coupon_workers.cli.main import COMMANDS, main
from coupon_workers.embedded.servers import BROKER_URL, DATABASE_URL, REDIS_URL, EmbeddedServers
from coupon_workers.runtime.settings import Settings

Run = Callable[..., Result]


@pytest.fixture
def run(settings: Settings, engine: Engine, redis_client: redis.Redis) -> Run:
    """Run a command with the environment of the run's servers; a variable may be overridden or, with None, unset."""
    env: dict[str, str | None] = {
        name: getattr(settings, field).get_secret_value()
        for name, field in ((DATABASE_URL, "database_url"), (REDIS_URL, "redis_url"), (BROKER_URL, "broker_url"))
    }

    def invoke(*words: str, overrides: Mapping[str, str | None] | None = None) -> Result:
        return CliRunner().invoke(main, words, env={**env, "COLUMNS": "200", **(overrides or {})})

    return invoke


def test_a_new_key_stands_alone_on_standard_output(run: Run, engine: Engine) -> None:
    """A script can take it as it is."""
    result = run("keys", "create", "--name", "shop", "--scope", "storefront", "--scope", "orders")

    assert 0 == result.exit_code
    assert 1 == len(result.stdout.splitlines())
    caller = verify_key(engine, result.stdout.strip())
    assert caller is not None
    assert ("shop", frozenset({"storefront", "orders"}), False) == (caller.name, caller.scopes, caller.signed)


def test_keys_are_listed_without_what_opens(run: Run) -> None:
    """By their ids, which revoke takes."""
    key = run("keys", "create", "--name", "shop", "--scope", "ops", "--signed").stdout.strip()

    listed = run("keys", "list").stdout

    assert key.split("_")[1] in listed and "shop" in listed
    assert key[20:] not in listed


def test_a_listed_key_is_one_line_and_a_revoked_one_is_shown_when_asked_for(run: Run) -> None:
    """Whatever the width of the terminal."""
    narrow = {"COLUMNS": "40"}
    key_ids = []
    for name in ("first shop", "second shop"):
        scopes = [word for scope in ("storefront", "orders", "admin", "ops") for word in ("--scope", scope)]
        key_ids.append(run("keys", "create", "--name", name, *scopes).stdout.split("_")[1])
    run("keys", "revoke", key_ids[0])

    valid = run("keys", "list", overrides=narrow).stdout
    every = run("keys", "list", "--all", overrides=narrow).stdout
    as_json = json.loads(run("keys", "list", "--json", "--all").stdout)

    row = re.compile(r"second shop +storefront orders admin ops +\d{4}-\d\d-\d\d \d\d:\d\d *$", re.MULTILINE)
    assert row.search(valid)
    assert key_ids[0] not in valid and key_ids[0] in every
    assert key_ids == [key["key_id"] for key in reversed(as_json)]
    assert [True, False] == [key["revoked_at"] is None for key in as_json]


def test_a_revoked_key_opens_nothing(run: Run, engine: Engine) -> None:
    """And a key that does not exist is an error of one line."""
    key = run("keys", "create", "--name", "shop", "--scope", "ops").stdout.strip()

    revoked = run("keys", "revoke", key.split("_")[1])
    unknown = run("keys", "revoke", "0123456789abcdef")

    assert (0, 1) == (revoked.exit_code, unknown.exit_code)
    assert verify_key(engine, key) is None
    assert ["Error: there is no such key"] == unknown.stderr.splitlines()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("keys", "create", "--name", "shop"), 2),
        (("keys", "create", "--name", "shop", "--scope", "root"), 2),
        (("keys", "create", "--name", " ", "--scope", "ops"), 1),
        (("nonsense",), 2),
    ],
)
def test_a_wrong_command_makes_nothing(run: Run, engine: Engine, words: tuple[str, ...], code: int) -> None:
    """Exit 2 for what cannot be meant, 1 for what is refused."""
    assert code == run(*words).exit_code

    with engine.connect() as connection:
        assert 0 == connection.scalar(text("SELECT count(*) FROM api_key"))


def test_the_queues_are_shown(run: Run) -> None:
    """Each with its depth, and the claims that wait."""
    result = run("queues")

    assert 0 == result.exit_code
    assert "settle" in result.stdout and "care" in result.stdout
    assert "claims that wait: 0" in result.stdout
    as_json = json.loads(run("queues", "--json").stdout)
    assert ["settle", "care", "notify", "campaign"] == [queue["name"] for queue in as_json["queues"]]
    assert ([], 0) == (as_json["pending_claims"], as_json["pending_total"])


def test_dead_letters_are_listed_and_discarded(run: Run, settings: Settings) -> None:
    """By their ids; the second time there is none."""
    assert settings.broker_url is not None
    broker = redis.Redis.from_url(settings.broker_url.get_secret_value())
    broker.zadd("dramatiq:care.XQ", {"message-1": 1_000})
    broker.hset("dramatiq:care.XQ.msgs", "message-1", b"?")
    broker.close()

    listed = run("dead-letters", "list")
    first = run("dead-letters", "discard", "message-1")
    second = run("dead-letters", "discard", "message-1")

    assert "message-1" in listed.stdout
    assert [0, 1] == [first.exit_code, second.exit_code]


def test_a_dead_letter_is_listed_as_it_is(run: Run, settings: Settings) -> None:
    """What it says is no markup, whoever sent it."""
    assert settings.broker_url is not None
    content = {"actor_name": "greet[/]", "args": ["[bold]", "[/home]"], "options": {}}
    with redis.Redis.from_url(settings.broker_url.get_secret_value()) as broker:
        broker.zadd("dramatiq:care.XQ", {"[/message]": 1_000})
        broker.hset("dramatiq:care.XQ.msgs", "[/message]", json.dumps(content))

        listed = run("dead-letters", "list")

        broker.delete("dramatiq:care.XQ", "dramatiq:care.XQ.msgs")
    assert 0 == listed.exit_code, listed.exception
    assert all(word in listed.stdout for word in ("[/message]", "greet[/]", "[bold] [/home]"))


def test_a_migration_of_a_migrated_database_changes_nothing(run: Run) -> None:
    """It may run at every start."""
    assert 0 == run("migrate").exit_code


@pytest.mark.parametrize("command", ["queues", "env", "up"])
def test_a_bad_setting_is_named(run: Run, command: str) -> None:
    """Exit code 2 and one line."""
    result = run(command, overrides={"COUPON_HTTP_PORT": "none"})

    assert 2 == result.exit_code
    assert "COUPON_HTTP_PORT" in result.stderr
    assert 1 == len(result.stderr.strip().splitlines())


def test_a_server_that_is_not_there_is_an_error_of_one_line(run: Run) -> None:
    """No trace."""
    result = run("keys", "list", overrides={DATABASE_URL: "postgresql://127.0.0.1:1/x"})

    assert 1 == result.exit_code
    assert 1 == len(result.stderr.strip().splitlines())


def test_without_addresses_those_of_a_running_up_are_taken(run: Run, servers: EmbeddedServers, tmp_path: Path) -> None:
    """It is found by its data folder; where nothing runs, the missing variable is named."""
    nothing = {DATABASE_URL: None, REDIS_URL: None, BROKER_URL: None}

    found = run("queues", overrides={**nothing, "COUPON_DATA_DIR": str(servers.data_dir)})
    missing = run("queues", overrides={**nothing, "COUPON_DATA_DIR": str(tmp_path)})

    assert 0 == found.exit_code
    assert 1 == missing.exit_code
    assert f"no `coupon-workers up` runs with the data folder {tmp_path}; start one" in missing.stderr
    assert "COUPON_BROKER_URL" in missing.stderr


@pytest.mark.parametrize(
    "words",
    [("check",), ("queues",), ("keys", "list"), ("preheat", "1"), ("dead-letters", "list"), ("migrate",)],
    ids=lambda words: words[0],
)
def test_every_command_says_that_nothing_runs(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    """In the same words, in one line."""
    nothing = {DATABASE_URL: None, REDIS_URL: None, BROKER_URL: None, "COUPON_DATA_DIR": str(tmp_path)}

    result = run(*words, overrides=nothing)

    assert 1 == result.exit_code
    assert f"no `coupon-workers up` runs with the data folder {tmp_path}; start one" in result.stderr
    assert 1 == len(result.stderr.splitlines())


def test_a_variable_that_is_no_setting_is_warned_of_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the one that may be meant; the command runs all the same, and what it starts does not say it again."""
    monkeypatch.setenv("_COUPON_UNKNOWN_TOLD", "")

    first = run("keys", "list", overrides={"COUPON_HTTP_PROT": "8080"})
    second = run("keys", "list", overrides={"COUPON_HTTP_PROT": "8080"})

    assert ["Warning: unknown setting COUPON_HTTP_PROT; is COUPON_HTTP_PORT meant?"] == first.stderr.splitlines()
    assert (0, 0, "") == (first.exit_code, second.exit_code, second.stderr)


def test_a_bad_setting_is_told_without_the_words_of_the_library(run: Run) -> None:
    """Variable, and what is wrong."""
    result = run("queues", overrides={"COUPON_LOG_FORMAT": "xml"})

    assert "Error: COUPON_LOG_FORMAT: must be json or console\n" == result.stderr


def test_the_help_fits_a_terminal(run: Run) -> None:
    """Each command in a line of its own that says all it has to say."""
    lines = run("--help", overrides={"COLUMNS": "80"}).stdout.splitlines()

    commands = [line for line in lines if line.split()[:1] and line.split()[0] in COMMANDS]
    assert list(COMMANDS) == [line.split()[0] for line in commands]
    assert all(line.endswith(".") and not line.endswith("...") and len(line) <= 80 for line in commands)


def test_every_command_can_be_loaded(run: Run) -> None:
    """And says in a line what it is for."""
    for name in COMMANDS:
        result = run(name, "--help")

        assert 0 == result.exit_code, name
        assert "cannot be loaded" not in result.stdout, name
