"""A world beside the main one: two states of the same servers that are there at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import make_url

from bench.stage import Stage
from bench.world import World
from coupon_workers.embedded.servers import DATABASE_URL, REDIS_URL


@contextmanager
def side_world(stage: Stage, database: str, redis_database: int) -> Iterator[World]:
    """A database and a Redis database of their own on the stage's servers, gone when the block ends."""
    stage.world.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")  # of a run that was killed
    stage.world.execute(f"CREATE DATABASE {database}")
    urls = stage.servers.urls()
    address = make_url(urls[DATABASE_URL]).set(database=database)
    settings = stage.settings(
        database_url=address.render_as_string(hide_password=False),
        redis_url=f"{urls[REDIS_URL].partition('?')[0]}?db={redis_database}",
    )
    world = World(settings)
    try:
        yield world
    finally:
        world.services.redis.flushdb(asynchronous=True)
        world.close()
        stage.world.execute(f"DROP DATABASE {database} WITH (FORCE)")


def addresses(world: World) -> dict[str, str]:
    """The environment that leads a program to ``world``."""
    settings = world.settings
    assert settings.database_url is not None and settings.redis_url is not None
    return {
        DATABASE_URL: settings.database_url.get_secret_value(),
        REDIS_URL: settings.redis_url.get_secret_value(),
    }
