"""
Heron, a small cloud that was invented for docs/write-a-provider.md, which has a provider for it.

    python -m tests.clouds.heron.server FOLDER NETWORK

Its API is described in that page. What a stranger's cloud does differently from others it does, too: it lists host keys
by their fingerprints, takes labels of few characters, pages by cursors, filters by repeated keys, and a machine that
failed is billed until it is deleted.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import define, field

from tests.clouds.emulator import Answer, Emulator, Request, route, serve
from tests.clouds.hosting import Boot, Machine

KEY = "hk_0123456789abcdef"
REGIONS = ("fjord", "delta")
SIZES: dict[str, dict[str, Any]] = {
    "egret-2": {
        "vcpus": 2, "memory_mib": 4096, "disk_gb": 40, "gpu": None, "prices": {"fjord": "0.05", "delta": "0.06"},
    },
    "egret-8": {
        "vcpus": 8, "memory_mib": 16384, "disk_gb": 80, "gpu": None, "prices": {"fjord": "0.20", "delta": "0.22"},
    },
    "crane-1": {
        "vcpus": 8, "memory_mib": 65536, "disk_gb": 200, "prices": {"delta": "2.40"},
        "gpu": {"model": "H100", "count": 1, "memory_mib": 81920},
    },
}  # fmt: skip
_SPOT = 0.4
_LABEL, _VALUE, _MOST_LABELS = re.compile(r"[a-z0-9-]{1,24}"), re.compile(r"[a-z0-9._-]{1,48}"), 8
_PAGE, _MOST_USER_DATA = 50, 16 * 1024
_STATUS = {"pending": "booting", "running": "active", "dead": "failed", "stopped": "deleted", "ending": "deleting"}
_FIELDS = {"size", "region", "spot", "labels", "ssh_key", "user_data", "request_id"}
_ENDS_IN = 0.3
"""Seconds in which a machine that is being deleted is there, and billed."""


def refusal(status: int, code: str, message: str, **more: Any) -> Answer:
    """Write an error."""
    return Answer({"code": code, "message": message, **more}, status)


@define(eq=False)
class Row:
    """One machine."""

    id: str
    body: dict[str, Any]
    price: float
    created: datetime = field(factory=lambda: datetime.now(UTC))
    reclaimed: bool = False
    forgotten: bool = False
    fingerprint: str | None = None


class Heron(Emulator):
    """Answer as Heron does."""

    missing = refusal(404, "not_found", "There is no such thing.")

    def __init__(self, folder: Path, network: str, url: str) -> None:
        super().__init__(folder, network, url)
        self.rows: dict[str, Row] = {}
        self.reset()

    # What a test asks for.

    def reset(self) -> None:
        """Have everything in stock, at its usual price."""
        self.stock: dict[str, int] = {}
        self.dearer: dict[str, float] = {}
        self.page = _PAGE
        self.limit = 100
        for row in self.rows.values():
            # They leave the list in the end, and so they do when a test is over.
            row.forgotten = row.reclaimed

    def control(self, what: str, given: Any) -> Any:
        """Do what only the tests of this cloud ask for."""
        if what != "set":
            raise ValueError(what)
        for name, value in given.items():
            setattr(self, name, value)

    def authorize(self, request: Request) -> Answer | None:
        """Let in a client with a key of the account."""
        if request.headers.get("authorization") == f"Bearer {KEY}":
            return None
        return refusal(401, "unauthorized", "The key is wrong.")

    def instances(self) -> list[dict[str, Any]]:
        """Return every machine there ever was."""
        return [
            {
                "id": row.id,
                "name": row.id,
                "alive": self._there(row),
                "state": self._status(row),
                "spot": row.body.get("spot", False),
                "tags": row.body["labels"],
                "region": row.body["region"],
                "size": row.body["size"],
                "base": str(self.machines.folder / row.id),
            }
            for row in self.rows.values()
        ]

    def interrupt(self, name: str) -> None:
        """Reclaim a machine, which costs nothing any more."""
        self.rows[name].reclaimed = True
        self.machines.end(name)

    def changed(self, machine: Machine) -> None:
        """Write down the fingerprint of a machine's key once it runs."""
        if machine.state != "running":
            return
        if machine.host is None or machine.boot.conditions.get("key"):
            self.rows[machine.name].fingerprint = "A" * 43
        else:
            path = machine.host.base / "host_key.pub"
            shown = subprocess.run(["ssh-keygen", "-l", "-f", str(path)], check=True, capture_output=True, text=True)
            self.rows[machine.name].fingerprint = shown.stdout.split()[1].removeprefix("SHA256:")

    # What is sold.

    @route("GET", "/v1/sizes")
    def sizes(self, request: Request) -> Answer:
        """List sizes with prices and stock, by region."""
        return Answer({"sizes": [{"name": name, **self._size(name)} for name in SIZES], "next_cursor": None})

    def _size(self, name: str) -> dict[str, Any]:
        size = SIZES[name]
        places = {
            region: {
                "hourly": f"{self._price(name, region):.4f}",
                "spot_hourly": f"{self._price(name, region) * _SPOT:.4f}",
                "left": self.stock.get(f"{name}/{region}", 9),
            }
            for region in size["prices"]
        }
        return {**{key: value for key, value in size.items() if key != "prices"}, "regions": places}

    def _price(self, name: str, region: str) -> float:
        return float(SIZES[name]["prices"][region]) * self.dearer.get(f"{name}/{region}", 1.0)

    # Machines.

    @route("POST", "/v1/machines")
    def create(self, request: Request) -> Answer:
        """Rent a machine; the same request id gives the same machine."""
        body = request.json
        if errors := _faults(body):
            return refusal(422, "invalid", "The request is invalid.", errors=errors)
        for row in self.rows.values():
            if row.body["request_id"] == body["request_id"] and self._there(row):
                return Answer({"machine": self._shown(row)}, 200)
        place = f"{body['size']}/{body['region']}"
        if self.stock.get(place, 9) < 1:
            return refusal(409, "sold_out", f"There is no {body['size']} left in {body['region']}.")
        if sum(map(self._there, self.rows.values())) >= self.limit:
            return refusal(403, "limit_reached", f"The account may have {self.limit} machines.")
        if place in self.stock:
            self.stock[place] -= 1
        price = self._price(body["size"], body["region"]) * (_SPOT if body.get("spot") else 1.0)
        row = Row(f"m{len(self.rows):06d}", body, price)
        self.rows[row.id] = row
        commands = [body["user_data"]] if body.get("user_data") else []
        gpu = SIZES[body["size"]]["gpu"]
        gpus = [f"NVIDIA H100 80GB HBM3, {gpu['memory_mib']}"] * gpu["count"] if gpu else []
        boot = Boot(keys=[body["ssh_key"]], commands=commands, gpus=gpus, conditions=request.conditions)
        self.machines.begin(row.id, boot)
        return Answer({"machine": self._shown(row)}, 201)

    @route("GET", "/v1/machines")
    def machines_list(self, request: Request) -> Answer:
        """List machines with all labels that are asked for, a page at a time."""
        wanted = [value.partition("=") for key, value in request.pairs if key == "label"]
        # One that was reclaimed is shown for a while, and costs nothing.
        rows = [
            row
            for row in self.rows.values()
            if (self._there(row) or row.reclaimed) and not row.forgotten and self.shown(row.id)
        ]
        rows = [row for row in rows if all(row.body["labels"].get(name) == value for name, _, value in wanted)]
        rows = [row for row in rows if row.id > request.query.get("cursor", "")]
        size = min(self.page, int(request.query.get("limit", _PAGE)))
        page, more = rows[:size], len(rows) > size
        return Answer({"machines": list(map(self._shown, page)), "next_cursor": page[-1].id if more else None})

    @route("PATCH", "/v1/machines/{id}")
    def label(self, request: Request) -> Answer:
        """Write labels, beside those that there are."""
        row = self.rows.get(request.path_values["id"])
        if row is None or not self._there(row):
            return self.missing
        if errors := _label_faults(request.json.get("labels")):
            return refusal(422, "invalid", "The request is invalid.", errors=errors)
        row.body["labels"] |= request.json["labels"]
        return Answer({"machine": self._shown(row)})

    @route("DELETE", "/v1/machines/{id}")
    def delete(self, request: Request) -> Answer:
        """Begin to delete a machine."""
        row = self.rows.get(request.path_values["id"])
        if row is None or not self._there(row):
            return self.missing
        machine = self.machines.all[row.id]
        if machine.state != "ending":
            machine.state = "ending"
            threading.Thread(target=self._end, args=(row.id,), daemon=True).start()
        return Answer({"machine": self._shown(row)}, 202)

    def _end(self, name: str) -> None:
        time.sleep(_ENDS_IN)
        machine = self.machines.all[name]
        machine.state = "running"
        self.machines.end(name)

    def _there(self, row: Row) -> bool:
        return not row.reclaimed and self.machines.all[row.id].state not in ("ended", "stopped")

    def _status(self, row: Row) -> str:
        state = self.machines.all[row.id].state
        if row.reclaimed:
            return "reclaimed"
        return "booting" if state == "running" and row.fingerprint is None else _STATUS.get(state, "deleted")

    def _shown(self, row: Row) -> dict[str, Any]:
        machine, active = self.machines.all[row.id], self._status(row) == "active"
        failed = self._status(row) == "failed"
        return {
            "id": row.id,
            "status": self._status(row),
            "error": "The disk image could not be copied." if failed else None,
            "size": row.body["size"],
            "region": row.body["region"],
            "spot": row.body.get("spot", False),
            "hourly": f"{row.price:.4f}",
            "labels": row.body["labels"],
            "created_at": row.created.isoformat(),
            "ip": machine.address if active else None,
            "private_ip": machine.address if active else None,
            "ssh_port": self.machines.port,
            "host_key_sha256": [row.fingerprint] if active else [],
        }


def _faults(body: Any) -> list[dict[str, str]]:
    """Say what is wrong with the request of a machine."""
    if not isinstance(body, dict):
        return [{"field": "", "message": "is no object"}]
    wrong = [(name, "is unknown") for name in body if name not in _FIELDS]
    wrong += [(name, "is missing") for name in ("size", "region", "ssh_key", "request_id") if not body.get(name)]
    size = SIZES.get(body.get("size", ""))
    if size is None:
        wrong.append(("size", f"{body.get('size')!r} is unknown"))
    elif body.get("region") not in size["prices"]:
        wrong.append(("region", f"has no {body['size']}"))
    if len(body.get("user_data") or "") > _MOST_USER_DATA:
        wrong.append(("user_data", "is too long"))
    return [{"field": name, "message": message} for name, message in wrong] + _label_faults(body.get("labels"))


def _label_faults(labels: Any) -> list[dict[str, str]]:
    labels = labels or {}
    wrong = [{"field": "labels", "message": f"are more than {_MOST_LABELS}"}] if len(labels) > _MOST_LABELS else []
    for name, value in labels.items():
        if not _LABEL.fullmatch(name) or not _VALUE.fullmatch(str(value)):
            wrong.append(
                {"field": f"labels.{name}", "message": f"{value!r} is no name of up to 24, or value of up to 48"}
            )
    return wrong


if __name__ == "__main__":
    serve(Heron, *sys.argv[1:])
