"""A batch as the bench makes it: its audience by SQL or as a stored file, issued here or by the worker."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace

from bench.failure import BenchFailure
from bench.sale import Sale
from bench.world import World
from coupon_workers.campaigns.batch_run import run_step, start_batch
from coupon_workers.campaigns.shard_step import CHUNK
from coupon_workers.campaigns.staging import stage_batch
from coupon_workers.runtime.services import Services
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

    def issue_all(self, threads: int) -> float:
        """Start it and take its steps here, by so many threads as in a worker; the seconds of the steps."""
        post = _Box()
        services = replace(self.world.services, post=post)
        if start_batch(services, self.batch_id) != "running":
            raise BenchFailure("the batch does not run")
        began_s = time.perf_counter()
        with ThreadPoolExecutor(threads) as worker:
            for taken in [worker.submit(_take_steps, services, post) for _ in range(threads)]:
                taken.result()
        return time.perf_counter() - began_s

    def wait_running(self, check: Callable[[], None]) -> None:
        """Wait until its first coupons are issued."""
        self._wait(lambda: self._issued > 0, 120.0, check)

    def wait_done(self, users: int, patience_s: float, check: Callable[[], None]) -> None:
        """Wait until it is done. Raises ``BenchFailure`` unless each of ``users`` has a coupon."""
        self._wait(lambda: self._status_is("done"), patience_s, check)
        self.check_done(users)

    def check_running(self) -> None:
        """Raise ``BenchFailure`` when it has ended: what was measured beside it was not beside it all the time."""
        if not self._status_is("running"):
            raise BenchFailure("the batch was over too soon")

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


class _Box:
    """A post that keeps the steps it is given, in their order, until somebody takes them."""

    def __init__(self) -> None:
        self.steps: deque[Task] = deque()

    def send(self, task: Task) -> None:
        if task.name == "issue_shard":
            self.steps.append(task)


def _take_steps(services: Services, box: _Box) -> None:
    """Take steps until there are none; a step that is the last of its shard sends no more."""
    while True:
        try:
            batch_id, shard, cursor = map(int, box.steps.popleft().args[:3])
        except IndexError:
            return
        run_step(services, batch_id, shard, cursor, chunk=CHUNK)
