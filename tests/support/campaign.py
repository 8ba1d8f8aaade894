"""A campaign for tests: a batch whose audience is staged by SQL, and a worker that the test plays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from coupon_workers.campaigns.batch import read_batch
from coupon_workers.campaigns.batch_run import run_step, start_batch
from coupon_workers.campaigns.batch_sweep import sweep_batches
from coupon_workers.runtime.services import Services
from tests.support.sale import Sale


@dataclass(frozen=True)
class Campaign:
    """One batch of a sale's template."""

    sale: Sale
    batch_id: int

    @property
    def services(self) -> Services:
        """The sale's."""
        return self.sale.services

    @property
    def books(self) -> dict[str, Any]:
        """The batch's row."""
        with self.services.engine.connect() as connection:
            return dict(read_batch(connection, self.batch_id))

    def start(self) -> str:
        """Start it; its status afterwards."""
        return str(start_batch(self.services, self.batch_id))

    def work(self, *, chunk: int = 3, most: int = 10_000) -> int:
        """Take up to ``most`` messages of shards from the post, as a worker would; how many there were."""
        post: Any = self.services.post
        done = 0
        while done < most:
            task = next((task for task in post.sent if task.name == "issue_shard"), None)
            if task is None:
                break
            post.sent.remove(task)
            run_step(self.services, *task.args, chunk=chunk)
            done += 1
        return done

    def sweep(self) -> dict[str, int]:
        """One pass of the sweep."""
        return sweep_batches(self.services)

    def owners(self) -> list[str]:
        """Users of the batch's coupons, sorted."""
        rows = self.sale.rows(f"SELECT user_id FROM coupon WHERE batch_no = '{self.batch_id}' ORDER BY user_id")
        return [row[0] for row in rows]

    def failures(self) -> list[tuple[str, str]]:
        """(value, reason) of the rows that got no coupon, in order of the file."""
        rows = self.sale.rows(
            f"SELECT value, reason FROM batch_failure WHERE batch_id = {self.batch_id} ORDER BY row_no, failure_id"
        )
        return [(row[0], row[1]) for row in rows]


def plan_campaign(
    sale: Sale, users: Sequence[str], *, shards: int = 2, policy: str = "all_or_nothing", **columns: Any
) -> Campaign:
    """A batch that is ready, its users dealt out to the shards in turn, each at the row of its place in the file."""
    batch_id = sale.services.next_id(0)
    now = sale.services.clock()
    named = {
        "batch_id": batch_id,
        "template_id": sale.template_id,
        "name": "Spring",
        "policy": policy,
        "status": "ready",
        "row_count": len(users),
        "audience_count": len(users),
        "shard_count": shards,
        "created_by": "key-1",
        "created_at": now,
        "updated_at": now,
    } | columns
    with sale.services.engine.begin() as connection:
        names = ", ".join(named)
        connection.execute(
            text(f"INSERT INTO issue_batch ({names}) VALUES ({', '.join(':' + name for name in named)})"), named
        )
        for shard in range(shards):
            members = list(_dealt(users, shard, shards))
            connection.execute(
                text(
                    "INSERT INTO issue_shard (batch_id, shard, member_count, updated_at)"
                    " VALUES (:batch_id, :shard, :count, :now)"
                ),
                {"batch_id": batch_id, "shard": shard, "count": len(members), "now": now},
            )
            for number, (row_no, user) in enumerate(members, start=1):
                connection.execute(
                    text(
                        "INSERT INTO audience_member (batch_id, shard, member_no, user_id, row_no)"
                        " VALUES (:batch_id, :shard, :number, :user, :row_no)"
                    ),
                    {"batch_id": batch_id, "shard": shard, "number": number, "user": user, "row_no": row_no},
                )
    return Campaign(sale, batch_id)


def _dealt(users: Sequence[str], shard: int, shards: int) -> Iterable[tuple[int, str]]:
    return ((row, user) for row, user in enumerate(users, start=2) if row % shards == shard)
