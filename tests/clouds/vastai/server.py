"""
The emulator of Vast.ai's API, whose containers are real SSH hosts.

    python -m tests.clouds.vastai.server FOLDER NETWORK

Sections are those of reference/vastai.md.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from tests.clouds.emulator import Answer, Emulator, Handler, Request, route, serve
from tests.clouds.hosting import Boot, Machine
from tests.clouds.vastai.contracts import Contract, described, wrong
from tests.clouds.vastai.listings import Ask, asks, meets, searched
from tests.clouds.volumes import bind

FRONT = "vast-test-key-"
"""How every key of the account begins."""

PAGE = 25  # §5

# §7: seconds between calls of one kind by one identity, or how many calls in how many seconds.
INTERVALS = {
    "create": 4.5,
    "destroy": 3.0,
    "show": 2.0,
    "manage": 1.0,
    "list": 1.0,
    "ssh": 1.0,
    "detach": 2.0,
    "bid": 5.5,
    "volumes": 5.5,
}
SEARCHES, SEARCH_WINDOW = 10, 60.0
TOLERANCE = 0.9


def both(method: str, path: str) -> Callable[[Handler], Handler]:
    """Have a method answer a path with and without a slash at its end (§1)."""

    def mark(handler: Handler) -> Handler:
        return route(method, path)(route(method, f"{path}/")(handler))

    return mark


def refusal(status: int, error: str, msg: str, **more: Any) -> Answer:
    """Refuse in the usual way (§7)."""
    return Answer({"success": False, "error": error, "msg": msg, **more}, status)


class VastAI(Emulator):
    """Answer as Vast.ai does."""

    missing: ClassVar[Answer] = Answer("<html><title>404: Not Found</title></html>", 404)

    def __init__(self, folder: Path, network: str, url: str) -> None:
        super().__init__(folder, network, url)
        self.asks = asks()
        self.contracts: dict[int, Contract] = {}
        self.recent: dict[tuple[str, str], list[float]] = {}
        self.volumes: dict[int, dict[str, Any]] = {}
        self.ssh_keys: dict[int, str] = {}
        self.credit = 25.0
        self.bulk = True
        self.paced = True
        self.page = PAGE

    def authorize(self, request: Request) -> Answer | None:
        """Let the account's keys in everywhere, and a container's own key at its own contract."""
        key = request.headers.get("authorization", "").removeprefix("Bearer ") or request.query.get("api_key", "")
        if key.startswith(FRONT):
            return self._too_often(request, key)
        own = next((each for each in self.contracts.values() if key and key == each.key and not each.destroyed), None)
        if own is None:
            # §7: documented as 401 on some paths, seen as 404.
            return refusal(404, "auth_error", "Invalid user key")
        if request.path.rstrip("/") != f"/api/v0/instances/{own.id}":
            return refusal(403, "forbidden", "This key may not do that.")  # §7: scoped key
        return None

    def reset(self) -> None:
        """Forget how often was called, what the account has left, and what happened to listings."""
        self.recent.clear()
        self.volumes.clear()
        self.ssh_keys.clear()
        self.credit, self.bulk, self.page = 25.0, True, PAGE
        for number, ask in asks().items():
            self.asks[number].facts = ask.facts

    def facts(self, request: Request) -> dict[str, Any]:
        """Tell what is rented, and how, or whether a container asks."""
        if not request.path.startswith("/api/v0/asks/"):
            return {"own": FRONT not in request.headers.get("authorization", "")}
        ask = self.asks.get(int(request.path.rstrip("/").rpartition("/")[2]))
        bid = (request.json or {}).get("price") is not None
        return {"gpu": ask.facts["gpu_name"] if ask else None, "market": "spot" if bid else "on-demand"}

    def instances(self) -> list[dict[str, Any]]:
        """List all contracts there ever were."""
        return [
            {
                "id": str(each.id),
                "ask": each.ask.id,
                "alive": not each.destroyed,
                "state": each.machine.state if each.machine else "none",
                "name": each.given.get("label") or "",
                "spot": each.bid is not None,
                "price": each.bid,
                "image": each.given["image"],
                "disk": each.given["disk"],
                "volume": each.given.get("volume_info"),
                "env": each.given.get("env") or {},
                "onstart": each.given.get("onstart") or "",
                "key": each.key,
                "lets_in": each.keys,
                "address": each.machine.address if each.machine else None,
                "base": str(each.machine.host.base) if each.machine and each.machine.host else None,
            }
            for each in self.contracts.values()
        ]

    def terminate(self, name: str) -> None:
        """Destroy a contract."""
        contract = self.contracts[int(name)]
        contract.destroyed = True
        contract.ask.by = None
        if contract.machine:
            self.machines.end(name)

    def interrupt(self, name: str) -> None:
        """Have another client bid more: the container is stopped, and its disk billed on (§8)."""
        contract = self.contracts[int(name)]
        contract.wanted = contract.state = "stopped"
        contract.status = "exited"
        self.machines.stop(name)

    def changed(self, machine: Machine) -> None:
        """Follow the container (§5)."""
        contract = self.contracts[int(machine.name)]
        if machine.state == "running":
            contract.status, contract.says = "running", f"success, running {contract.given['image']}/ssh"
        elif machine.state == "dead":
            contract.status, contract.says = "exited", "container exited"

    def control(self, what: str, given: Any) -> Any:
        """Change the account, a listing or a contract, or how much one call does."""
        if what == "credit":
            self.credit = given
        elif what == "listing":
            self.asks[given["id"]].facts.update(given["facts"])
        elif what == "contract":
            contract = self.contracts[int(given["id"])]
            contract.status, contract.says = given.get("status", contract.status), given.get("says", contract.says)
        elif what == "paced":
            self.paced = given
        elif what == "bulk":
            self.bulk = given
        elif what == "volumes":
            self.volumes = {row["id"]: row for row in given}
        elif what == "account_key":
            self.ssh_keys[len(self.ssh_keys) + 1] = given
        elif what == "refresh":
            for each in self.contracts.values():
                if not each.destroyed:
                    each.refresh()
        elif what == "page":
            self.page = given
        elif what == "listings":
            return [each.row(8.0) for each in self.asks.values()]
        else:
            raise ValueError(what)
        return None

    @both("GET", "/api/v0/users/current")
    def user(self, request: Request) -> Answer:
        """Tell who asks (§1)."""
        return Answer({"id": 4711, "email": "me@example.com", "credit": self.credit, "ssh_key": None})

    @both("POST", "/api/v0/bundles")
    def search(self, request: Request) -> Answer:
        """List what is for sale (§2)."""
        try:
            return Answer({"offers": searched(self.asks.values(), request.json or {})})
        except ValueError as error:
            return refusal(400, "invalid_args", str(error))

    @both("PUT", "/api/v0/asks/{id}")
    def create(self, request: Request) -> Answer:
        """Rent (§4)."""
        given, number = request.json, int(request.path_values["id"])
        ask, price = self.asks.get(number), given.get("price")
        mistake = wrong(given)
        if mistake:
            return refusal(400, *mistake, ask_id=number)
        if self.credit <= 0:
            return refusal(400, "missing_billing", "Insufficient credits. Please add credit.", ask_id=number)  # §7
        if ask is None:
            msg = f"error 404/3603: no_such_ask Instance type by id {number} is not available."
            return refusal(404, "invalid_args", msg, ask_id=number)
        if price is not None and price < ask.facts["min_bid"]:
            # §4: it fails, and yet there is a contract, stopped and billed for its disk.
            left = self._contract(ask, given, state="stopped")
            msg = f"error 400/3491: bid {price} is below {ask.facts['min_bid']}"
            return refusal(400, "invalid_price", msg, new_contract=left.id)
        if ask.by is not None:
            if given.get("cancel_unavail", price is None):
                msg = f"error 410/3907: no_such_ask Instance type {number} is no longer available."
                return refusal(410, "no_such_ask", msg, ask_id=number)
            left = self._contract(ask, given, state="stopped", wanted="running")
            return Answer({"success": True, "new_contract": left.id})
        # §4, §9: a volume is on one machine, and every container there may have it.
        info = given.get("volume_info")
        held = self.volumes.get(info["volume_id"], {}) if info is not None else {}
        if info is not None and (info["create_new"] or held.get("machine_id") != number // 10):
            return refusal(400, "invalid_args", "volume is not available on this machine", ask_id=number)
        contract = self._contract(ask, given)
        ask.by = contract.id
        self._boot(contract, request.conditions)
        return Answer({"success": True, "new_contract": contract.id, "instance_api_key": contract.key})

    @both("GET", "/api/v0/volumes")
    def list_volumes(self, request: Request) -> Answer:
        """List the account's volumes (§9)."""
        told = {"status": "active", "start_date": 1_790_000_000.0, "disk_space": 15.0}
        rows = [
            {**told, **row, "label": row.get("label"), "instances": self._users(volume)}
            for volume, row in self.volumes.items()
        ]
        return Answer({"volumes": rows})

    @both("DELETE", "/api/v0/volumes")
    def delete_volume(self, request: Request) -> Answer:
        """Delete one that no container uses any more (§9)."""
        number = int(request.query.get("id") or (request.json or {}).get("id") or 0)
        if number not in self.volumes:
            return refusal(404, "no_such_volume", "Volume with that ID does not exist.")
        if self._users(number):
            return refusal(400, "invalid_args", "Volume is in use")
        del self.volumes[number]
        return Answer({"success": True})

    def _users(self, volume: int) -> list[dict[str, int]]:
        alive = [each for each in self.contracts.values() if not each.destroyed]
        return [{"id": each.id} for each in alive if (each.given.get("volume_info") or {}).get("volume_id") == volume]

    @both("GET", "/api/v0/instances/{id}")
    def show(self, request: Request) -> Answer:
        """Describe one contract; null if it is gone (§5)."""
        contract = self.contracts.get(int(request.path_values["id"]))
        there = contract is not None and not contract.destroyed
        return Answer({"instances": described(contract, self.machines.port) if contract and there else None})

    @both("GET", "/api/v0/instances")
    def old_list(self, request: Request) -> Answer:
        """Refuse what is no more (§5)."""
        return refusal(410, "deprecated_endpoint", "Use /api/v1/instances/ instead")

    @both("GET", "/api/v1/instances")
    def list(self, request: Request) -> Answer:
        """List contracts, page by page (§5)."""
        try:
            filters = json.loads(request.query.get("select_filters") or "{}")
            after = int(request.query.get("after_token") or 0)
        except ValueError:
            return refusal(400, "invalid_token", "Error in query parameters")
        if set(filters) - {"label", "id", "actual_status", "gpu_name"}:
            return refusal(400, "invalid_request", "Error in query parameters: not a valid search key")
        rows = [
            described(each, self.machines.port)
            for each in self.contracts.values()
            if not each.destroyed and self._listed(each)
        ]
        try:
            rows = [row for row in rows if all(meets(row[name], wanted) for name, wanted in filters.items())]
        except ValueError as error:
            return refusal(400, "invalid_request", f"Error in query parameters: {error}")
        size = min(self.page, int(request.query.get("limit") or self.page))
        rest = [row for row in rows if row["id"] > after]
        page = rest[:size]
        return Answer(
            {
                "success": True,
                "instances_found": len(page),
                "total_instances": len(rows),
                "label_counts": {},
                "next_token": str(page[-1]["id"]) if len(rest) > size else None,
                "instances": page,
            }
        )

    @both("PUT", "/api/v0/instances/{id}")
    def manage(self, request: Request) -> Answer:
        """Label (§6)."""
        contract = self.contracts.get(int(request.path_values["id"]))
        if contract is None or contract.destroyed:
            return refusal(404, "no_such_instance", "Instance not found")
        contract.given["label"] = request.json.get("label", contract.given.get("label"))
        return Answer({"success": True})

    @both("PUT", "/api/v0/instances/bid_price/{id}")
    def bid(self, request: Request) -> Answer:
        """Bid another price for what may be taken back (§6, §8)."""
        contract, price = self._there(request), (request.json or {}).get("price")
        if contract is None or contract.bid is None:
            return refusal(404, "no_such_instance", "Instance with that ID does not exist.")
        if not isinstance(price, int | float) or not 0.001 <= price <= 32:
            return refusal(400, "invalid_price", "Please set a bid price >= 0.001.")
        contract.given["price"] = price
        return Answer({"success": True})

    # §3: keys of the account, which machines have that are made after them, and keys of one machine.

    @both("POST", "/api/v0/ssh")
    def add_key(self, request: Request) -> Answer:
        """Keep a key of the account."""
        text = str((request.json or {}).get("ssh_key") or "")
        if not text.startswith("ssh-"):
            return refusal(400, "no_ssh_key", "No ssh key provided")
        if text in self.ssh_keys.values():
            return refusal(400, "invalid_args", "SSH key already exists")
        number = max(self.ssh_keys, default=0) + 1
        self.ssh_keys[number] = text
        return Answer({"success": True, "key": _key(number, text)})

    @both("GET", "/api/v0/ssh")
    def list_keys(self, request: Request) -> Answer:
        """List the account's keys, in a bare array."""
        return Answer([_key(number, text) for number, text in self.ssh_keys.items()])

    @both("DELETE", "/api/v0/ssh/{id}")
    def drop_key(self, request: Request) -> Answer:
        """Forget a key of the account."""
        if self.ssh_keys.pop(int(request.path_values["id"]), None) is None:
            return refusal(400, "no_ssh_key", "No ssh key provided")
        return Answer({"success": True})

    @both("POST", "/api/v0/instances/{id}/ssh")
    def attach(self, request: Request) -> Answer:
        """Let a key in at one machine, as long as it lives."""
        contract, text = self._there(request), str((request.json or {}).get("ssh_key") or "")
        if contract is None:
            return refusal(404, "no_such_instance", "Instance not found.")
        if not text.startswith("ssh-"):
            return refusal(400, "no_ssh_key", "No ssh key provided")
        contract.keys = [*(each for each in contract.keys if each != text), text]
        return Answer({"success": True, "msg": "SSH key attached successfully"})

    @both("GET", "/api/v0/instances/{id}/ssh")
    def attached(self, request: Request) -> Answer:
        """List the keys of one machine, as text."""
        contract = self._there(request)
        if contract is None:
            return refusal(404, "no_such_instance", "Instance not found.")
        rows = [{"id": number, "name": "", "public_key": text} for number, text in enumerate(contract.keys, 1)]
        return Answer({"success": True, "ssh_keys": json.dumps(rows)})

    @both("DELETE", "/api/v0/instances/{id}/ssh/{key}")
    def detach(self, request: Request) -> Answer:
        """Let a key in no more."""
        contract, number = self._there(request), int(request.path_values["key"])
        if contract is None or not 1 <= number <= len(contract.keys):
            return refusal(404, "no_such_instance", "Instance not found.")
        contract.keys = contract.keys[: number - 1] + contract.keys[number:]
        return Answer({"success": True, "msg": "SSH key removed from instance."})

    def _there(self, request: Request) -> Contract | None:
        contract = self.contracts.get(int(request.path_values["id"]))
        return None if contract is None or contract.destroyed else contract

    @both("DELETE", "/api/v0/instances/{id}")
    def destroy(self, request: Request) -> Answer:
        """Destroy for good (§6)."""
        contract = self.contracts.get(int(request.path_values["id"]))
        if contract is None or contract.destroyed:
            return refusal(404, "no_such_instance", "Instance not found")
        self.terminate(str(contract.id))
        return Answer({"success": True, "msg": "Instance destroyed successfully"})

    @both("DELETE", "/api/v0/instances")
    def destroy_many(self, request: Request) -> Answer:
        """Destroy several (§6); those that are not there are passed over."""
        if not self.bulk:
            return self.missing
        for number in request.json["instance_ids"]:
            contract = self.contracts.get(int(number))
            if contract is not None and not contract.destroyed:
                self.terminate(str(number))
        return Answer({"success": True})

    def _contract(self, ask: Ask, given: dict[str, Any], state: str = "running", wanted: str = "") -> Contract:
        number = 27_000_000 + len(self.contracts) + 1
        contract = Contract(number, ask, given, secrets.token_hex(16), wanted=wanted or state, state=state)
        contract.status = None if state == "running" else "exited"
        contract.keys = [*self.ssh_keys.values()]
        self.contracts[number] = contract
        return contract

    def _boot(self, contract: Contract, conditions: dict[str, Any]) -> None:
        """Start the container; its variables are for its first process, and no SSH session sees them (§4)."""
        contract.status = "loading"
        if info := contract.given.get("volume_info"):
            folder = self.machines.folder / f"volume-{info['volume_id']}"
            folder.mkdir(exist_ok=True)
            bind(info["mount_path"], folder)
        env = {name: text for name, text in (contract.given.get("env") or {}).items() if not name.startswith("-")}
        env |= {"CONTAINER_API_KEY": contract.key, "VAST_TCP_PORT_22": str(self.machines.port)}
        # The reference leaves out how the container knows its number; public users of its key read these two.
        env |= {"CONTAINER_ID": str(contract.id), "VAST_CONTAINERLABEL": f"C.{contract.id}"}
        start = ["env", *(f"{name}={text}" for name, text in env.items()), "sh", "-c", contract.given["onstart"] or ":"]
        facts = contract.ask.facts
        gpus = [f"NVIDIA {facts['gpu_name']}, {facts['gpu_ram']}"] * facts["num_gpus"]
        boot = Boot(commands=[start], gpus=gpus, conditions=conditions, arrange=contract.let_in)
        contract.machine = self.machines.begin(str(contract.id), boot)

    def _listed(self, contract: Contract) -> bool:
        return time.monotonic() - contract.born >= self.lag

    def _too_often(self, request: Request, key: str) -> Answer | None:
        """Count the calls of one kind and identity, and refuse the one that comes too early, in plain text (§7)."""
        kind = _kind(request)
        if not kind or not self.paced:
            return None
        count, window = (SEARCHES, SEARCH_WINDOW) if kind == "search" else (1, INTERVALS[kind])
        now = time.monotonic()
        with self.lock:
            before = [at for at in self.recent.get((kind, key), ()) if now - at < window * TOLERANCE]
            self.recent[kind, key] = [*before, now][-count:]
        if len(before) < count:
            return None
        return Answer(f"API requests too frequent endpoint threshold={window:g}", 429)


def _key(number: int, text: str) -> dict[str, Any]:
    return {"id": number, "user_id": 4711, "public_key": text, "created_at": "2026-11-23", "deleted_at": None}


def _kind(request: Request) -> str:
    path = request.path.rstrip("/")
    if path == "/api/v0/bundles":
        return "search"
    if path.startswith("/api/v0/asks/"):
        return "create"
    if path == "/api/v1/instances":
        return "list"
    if path == "/api/v0/volumes":
        return "volumes"
    if path.startswith("/api/v0/instances/bid_price"):
        return "bid"
    if "/ssh" in path:
        return "detach" if request.method == "DELETE" else "ssh"
    if path.startswith("/api/v0/instances"):
        return {"DELETE": "destroy", "GET": "show", "PUT": "manage"}.get(request.method, "")
    return ""


if __name__ == "__main__":
    serve(VastAI, *sys.argv[1:])
