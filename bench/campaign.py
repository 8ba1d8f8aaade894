"""A batch as the bench makes it: its audience by SQL or as a stored file, issued here or by the worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

from bench.failure import BenchFailure
from bench.sale import Sale
from bench.world import World
from coupon_workers.campaigns.batch_run import run_step, start_batch
from coupon_workers.campaigns.shard_step import CHUNK
from coupon_workers.campaigns.staging import stage_batch
from coupon_workers.runtime.task import Task
from coupon_workers.runtime.task import stage_batch as stage_task

_BATCH = """
    INSERT INTO issue_batch (batch_id, template_id, name, policy, status, file_name, created_by, created_at, updated_at)
    VALUES (%(batch_id)s, %(template_id)s, 'Bench', 'all_or_nothing', 'staging', 'bench.csv', 'bench', now(), now())
"""
_PART = "INSERT INTO audience_file (batch_id, part_no, content) VALUES (%(batch_id)s, %(part_no)s, %(content)s)"
_USERS_A_PART = 50_000
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class Campaign:
    """One batch of a sale's template."""

    world: World
    batch_id: int

    @classmethod
    def of_file(cls, world: World, sale: Sale, users: int, mark: str) -> Campaign:
        """A batch whose file is stored, as an upload leaves it."""
        batch_id = world.services.next_id(0)
        with closing(world.connect()) as connection, connection, connection.cursor() as cursor:
            cursor.execute(_BATCH, {"batch_id": batch_id, "template_id": sale.template_id})
            for part_no, first in enumerate(range(0, users, _USERS_A_PART)):
                rows = "".join(f"u-{mark}-{user:07}\n" for user in range(first, min(first + _USERS_A_PART, users)))
                content = (("user_id\n" if first == 0 else "") + rows).encode()
                cursor.execute(_PART, {"batch_id": batch_id, "part_no": part_no, "content": content})
        return cls(world, batch_id)

    @classmethod
    def staged(cls, world: World, sale: Sale, users: int, mark: str) -> Campaign:
        """A batch that is staged."""
        campaign = cls.of_file(world, sale, users, mark)
        status = stage_batch(world.services, campaign.batch_id)
        if status != "ready":
            raise BenchFailure(f"the batch is {status}")
        return campaign

    def send(self) -> None:
        """Ask the worker for it."""
        self.world.services.post.send(stage_task(self.batch_id))

    def issue_all(self) -> float:
        """Start it and take its steps here, one after the other; the seconds of the steps."""
        post = _Box([])
        services = replace(self.world.services, post=post)
        if start_batch(services, self.batch_id) != "running":
            raise BenchFailure("the batch does not run")
        steps = [task for task in post.sent if task.name == "issue_shard"]
        began_s = time.perf_counter()
        while steps:
            post.sent.clear()
            batch_id, shard, cursor = map(int, steps.pop(0).args)
            run_step(services, batch_id, shard, cursor, chunk=CHUNK)
            steps += [task for task in post.sent if task.name == "issue_shard"]
        return time.perf_counter() - began_s

    def wait_running(self, check: Callable[[], None]) -> None:
        """Wait until its first coupons are issued."""
        self._wait(lambda: self._issued > 0, 120.0, check)

    def wait_done(self, users: int, patience_s: float, check: Callable[[], None]) -> None:
        """Wait until it is done. Raises ``BenchFailure`` unless each of ``users`` has a coupon."""
        self._wait(lambda: self._status_is("done"), patience_s, check)
        self.check_done(users)

    def check_done(self, users: int) -> None:
        """Raise ``BenchFailure`` unless each of ``users`` has a coupon of the batch."""
        coupons = int(self.world.number("SELECT count(*) FROM coupon WHERE batch_no = :no", no=str(self.batch_id)))
        if not self._status_is("done") or (self._issued, coupons) != (users, users):
            raise BenchFailure(f"{coupons} of {users} users have a coupon of the batch")

    @property
    def _issued(self) -> int:
        return int(self.world.number("SELECT issued_count FROM issue_batch WHERE batch_id = :id", id=self.batch_id))

    def _status_is(self, status: str) -> bool:
        sql = "SELECT count(*) FROM issue_batch WHERE batch_id = :id AND status = :status"
        return self.world.number(sql, id=self.batch_id, status=status) == 1

    def _wait(self, until: Callable[[], bool], patience_s: float, check: Callable[[], None]) -> None:
        deadline_s = time.monotonic() + patience_s
        while not until():
            check()
            if self._status_is("failed") or time.monotonic() > deadline_s:
                raise BenchFailure("the batch did not come to its end")
            time.sleep(_LOOK_EVERY_S)


@dataclass(frozen=True)
class _Box:
    """A post that keeps what it is given."""

    sent: list[Task]

    def send(self, task: Task) -> None:
        self.sent.append(task)
