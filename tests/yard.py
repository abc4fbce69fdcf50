"""A provider of hosts of this machine that are rented, billed, and end themselves: its books outlive a program."""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import frozen

import skyward as sky
from skyward.hookspecs import Cluster, Instance, InstanceState, LaunchRequest, Offer, ProviderFacts, hookimpl
from skyward.model.instances.machine import SSHAddress
from skyward.model.instances.tags import Tags

ENDED = "ended"
"""The file in its home by which a host says that it has terminated itself."""


@frozen(kw_only=True)
class Yard:
    """
    Rent out hosts.

    Args:
        hosts: The base directory, address and port of each.
        key: The private key that they let in.
        books: Where it is written what is rented.
        price: What one costs, in USD an hour.
        known_hosts: The client's file of known hosts, which goes with the program.
    """

    hosts: tuple[tuple[str, str, int], ...]
    key: str
    books: str
    price: float = 3.6
    known_hosts: str = "/dev/null"

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Return what holds here: a host ends itself by a file in its home."""
        return ProviderFacts(name="yard", ends_own_bill=True, end_command=("sh", "-c", f': >"$HOME/{ENDED}"'))

    @hookimpl
    async def skyward_offers(self) -> Sequence[Offer]:
        """Sell one kind."""
        return (Offer(provider="yard", instance_type="box", vcpus=2, memory_gb=8, on_demand_price=self.price),)

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> str:
        """Return what machines share."""
        self.note("open", cluster.pool_id)
        return f"net-{cluster.pool_id}"

    @hookimpl
    async def skyward_release(self, cluster: Cluster, infra: str) -> None:
        """Write down that nothing is shared any more."""
        assert infra == f"net-{cluster.pool_id}"
        self.note("release", cluster.pool_id)

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: str) -> Sequence[Instance]:
        """Rent hosts that are free."""
        assert infra == f"net-{request.cluster.pool_id}"
        with self._books() as books:
            used = {row["host"] for row in self.there(books)}
            free = [number for number in range(len(self.hosts)) if number not in used]
            # The one that was left last, which may be out of order, comes last.
            free.sort(key=lambda number: sum(row["host"] == number for row in books["rows"]))
            if len(free) < len(request.nodes):
                raise sky.CapacityError("The yard has no more hosts.", provider="yard")
            for number, node in zip(free, request.nodes, strict=False):
                (Path(self.hosts[number][0]) / "home" / ENDED).unlink(missing_ok=True)
                name = f"box-{len(books['rows'])}"
                tags = request.tags_of(node).to_strings()
                books["rows"].append({"id": name, "host": number, "tags": tags, "at": time.time(), "over": False})
            names = {row["id"] for row in books["rows"][-len(request.nodes) :]}
            return [self._instance(row) for row in books["rows"] if row["id"] in names]

    @hookimpl
    async def skyward_instances(self, cluster: Cluster) -> Sequence[Instance]:
        """List the pool's hosts."""
        with self._books() as books:
            return [each for row in books["rows"] if (each := self._instance(row)).tags.pool_id == cluster.pool_id]  # type: ignore[union-attr]

    @hookimpl
    async def skyward_terminate(self, cluster: Cluster, ids: Sequence[str]) -> None:
        """End hosts."""
        self._end(ids)

    @hookimpl
    async def skyward_renew(self, cluster: Cluster, ids: Sequence[str], expires_at: float) -> None:
        """Write another expiry on hosts."""
        with self._books() as books:
            for row in books["rows"]:
                if row["id"] in ids:
                    row["tags"]["skyward:expires"] = str(int(expires_at))

    @hookimpl
    async def skyward_owned(self) -> Sequence[Instance]:
        """List all hosts."""
        with self._books() as books:
            return [self._instance(row) for row in self.there(books)]

    @hookimpl
    async def skyward_end(self, instances: Sequence[Instance]) -> None:
        """End hosts."""
        self._end([instance.id for instance in instances])

    def rented(self) -> list[str]:
        """List the ids of the hosts that are rented now."""
        with self._books() as books:
            return [row["id"] for row in self.there(books)]

    def notes(self, what: str) -> list[str]:
        """List the pools of which something was written down."""
        with self._books() as books:
            return [pool for said, pool in books["notes"] if said == what]

    def launched(self) -> int:
        """Count the hosts that were rented, now or before."""
        with self._books() as books:
            return len(books["rows"])

    def expire(self) -> None:
        """Have the time be over that is written on all hosts."""
        with self._books() as books:
            for row in books["rows"]:
                row["tags"]["skyward:expires"] = "1"

    def note(self, what: str, pool: str) -> None:
        """Write something down of a pool."""
        with self._books() as books:
            books["notes"].append([what, pool])

    def there(self, books: dict[str, Any]) -> list[dict[str, Any]]:
        """List the rows of what is rented now."""
        return [row for row in books["rows"] if self._instance(row).state is InstanceState.RUNNING]

    def _end(self, ids: Sequence[str]) -> None:
        with self._books() as books:
            for row in books["rows"]:
                row["over"] = row["over"] or row["id"] in ids

    def _instance(self, row: dict[str, Any]) -> Instance:
        base, address, port = self.hosts[row["host"]]
        over = row["over"] or (Path(base) / "home" / ENDED).exists()
        return Instance(
            id=row["id"],
            node=int(row["tags"]["skyward:node"]),
            provider="yard",
            state=InstanceState.ENDED if over else InstanceState.RUNNING,
            address=SSHAddress(host=address, port=port, keys=(self.key,), known_hosts=self.known_hosts),
            instance_type="box",
            hourly_rate=self.price,
            ip=address,
            private_ip=address,
            tags=Tags.from_strings(row["tags"]),
            launched_at=row["at"],
        )

    @contextmanager
    def _books(self) -> Iterator[dict[str, Any]]:
        path = Path(self.books)
        with path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            books = json.loads(file.read() or '{"rows": [], "notes": []}')
            yield books
            file.seek(0)
            file.truncate()
            file.write(json.dumps(books))


@frozen(kw_only=True)
class GuardedYard(Yard):
    """Rent out hosts that end their own bill only once they run, so that each client has a guardian."""

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Return what holds here."""
        end = ("sh", "-c", f': >"$HOME/{ENDED}"')
        return ProviderFacts(name="yard", ends_own_bill="running", end_command=end)
