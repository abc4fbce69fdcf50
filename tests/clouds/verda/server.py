"""
The Verda test cloud's own process: its API, and a real SSH host for every instance that runs.

    python -m tests.clouds.verda.server FOLDER NETWORK

Each answer names the section of the reference that it follows. It prints its address, and ends when its standard input
is closed.
"""

from __future__ import annotations

import itertools
import secrets
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.clouds.emulator import Answer, Emulator, Request, route, serve
from tests.clouds.hosting import Machine
from tests.clouds.verda import catalogue
from tests.clouds.verda.refusals import (
    gone,
    invalid,
    no_capacity,
    not_found,
    overlong,
    provisioning,
    unauthorized,
    unknown_instance,
)
from tests.clouds.verda.startup import boot
from tests.clouds.verda.storage import Storage
from tests.clouds.volumes import plug
from tests.hosts import Host

CLIENT_ID, CLIENT_SECRET = "verda-test-client", "verda-secret-not-real"
GONE = ("discontinued", "deleted", "deleting")
TOKEN_LIFE = 3600


class Verda(Emulator):
    """Answer as Verda does."""

    missing = Answer({"code": "not_found", "message": "Not Found"}, 404)

    def __init__(self, folder: Path, network: str, url: str) -> None:
        super().__init__(folder, network, url)
        self.rows: dict[str, dict[str, Any]] = {}
        self.ssh_keys: dict[str, dict[str, Any]] = {}
        self.scripts: dict[str, dict[str, Any]] = {}
        self.storage = Storage(folder / "volumes")
        self.tokens: dict[str, float] = {}
        self.refreshes: set[str] = set()
        self._numbers = itertools.count(1)
        self.reset()

    # What tests ask for.

    def reset(self) -> None:
        """Forget what a test asked for, beside faults."""
        self.token_life: float = TOKEN_LIFE
        self.balance = 100.0
        # Whether a machine listed as deleted leaves the list is not documented; here it stays until the test is over.
        self.ended_as = "discontinued"
        for row in self.rows.values():
            row["status"] = "discontinued" if row["status"] == "deleted" else row["status"]
        self.refuses = {"path": "", "tags": False}
        self.next_status = ""
        self.script_delay = 0.0
        self.keeps_disks = False
        self.storage.lag, self.storage.filesystem = 0, "ext4"
        self.id_form = "plain"
        self.on_demand = {place: list(names) for place, names in catalogue.ON_DEMAND.items()}
        self.spot = {place: list(names) for place, names in catalogue.SPOT.items()}

    def control(self, what: str, given: Any) -> Any:
        """Do what only the tests of this cloud ask for."""
        if what in (
            "keeps_disks",
            "token_life",
            "balance",
            "ended_as",
            "refuses",
            "next_status",
            "script_delay",
            "id_form",
            "on_demand",
            "spot",
        ):
            setattr(self, what, given)
        elif what == "revoke":
            self.tokens.clear()
            self.refreshes.clear()
        elif what == "status":
            self.rows[given["id"]]["status"] = given["status"]
        elif what == "forget":
            self.rows.pop(given)
        elif what == "left":
            return {
                "keys": [row["name"] for row in self.ssh_keys.values()],
                "scripts": [row["name"] for row in self.scripts.values()],
                "volumes": [row["name"] for row in self.storage.rows.values()],
            }
        elif what == "script_text":
            return [row["script"] for row in self.scripts.values()]
        elif what == "volume":
            return self.storage.make(given["name"], given["size"], given.get("type", "NVMe"), given["location"])
        elif what == "attached":
            self.storage.attach(given["volume"], given["instance"])
        elif what == "volumes":
            return list(self.storage.rows.values())
        elif what == "filesystem":
            self.storage.filesystem = given
        elif what == "detaches":
            self.storage.lag = given
        elif what == "drop":
            self.storage.rows = {name: row for name, row in self.storage.rows.items() if row["name"] not in given}
        elif what == "clear":
            self.ssh_keys.clear()
            self.scripts.clear()
            self.storage.rows.clear()
        else:
            raise ValueError(what)
        return None

    def facts(self, request: Request) -> dict[str, Any]:
        """Say of a launch what it asks for."""
        body = request.json if request.headers["content-type"].startswith("application/json") else None
        if not isinstance(body, dict):
            return {}
        return {name: body.get(name) for name in ("instance_type", "location_code", "is_spot", "action", "grant_type")}

    def instances(self) -> list[dict[str, Any]]:
        """Return every instance there ever was; one whose volumes are there is billed."""
        return [
            {
                "id": name,
                "alive": row["status"] not in ("discontinued", "deleted") or bool(self.storage.of(name)),
                "state": row["status"],
                "name": row["hostname"],
                "tags": {tag["key"]: tag["value"] for tag in row["tags"]},
                "spot": row["is_spot"],
                "region": row["location"],
                "type": row["instance_type"],
                "base": str(self.machines.folder / name),
                "volumes": [each["name"] for each in self.storage.of(name)],
            }
            for name, row in self.rows.items()
        ]

    def terminate(self, name: str) -> None:
        """End an instance behind everybody's back, with all it has."""
        for volume in self.storage.of(name):
            self.storage.rows.pop(volume["id"])
        for volume in self.storage.held(name):
            self.storage.detach(volume, name)
        self._end(name)

    def interrupt(self, name: str) -> None:
        """Take a spot instance back: its volumes stay, unless their owner said otherwise."""
        # reference/verda.md §8
        self.storage.interrupted(name, keep=self.keeps_disks)
        self._end(name)

    def changed(self, machine: Machine) -> None:
        """Write down what became of a machine."""
        words = {"running": "running", "dead": "error", "stopped": "offline", "ending": "deleting"}
        row = self.rows[machine.name]
        row["status"] = words.get(machine.state, self.ended_as)
        if machine.state == "running":
            row["ip"] = machine.address

    def _end(self, name: str) -> None:
        if name in self.machines.all:
            self.machines.end(name)
        else:
            self.rows[name]["status"] = self.ended_as

    # Who asks.

    def authorize(self, request: Request) -> Answer | None:
        """Let in who has a token that still holds."""
        if request.path == "/v1/oauth2/token":
            return None
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        return None if time.monotonic() < self.tokens.get(token, 0.0) else unauthorized()

    @route("POST", "/v1/oauth2/token")
    def token(self, request: Request) -> Answer:
        """Log in, or renew a login; as JSON or as a form."""
        # reference/verda.md §1
        given = self._form(request)
        if given.get("grant_type") == "refresh_token":
            if given.get("refresh_token") not in self.refreshes:
                return Answer({"code": "unauthorized_request", "message": "Invalid refresh token"}, 401)
            self.refreshes.discard(given["refresh_token"])
        elif not str(given.get("client_id")).startswith(CLIENT_ID) or given.get("client_secret") != CLIENT_SECRET:
            return Answer({"code": "unauthorized_request", "message": "Invalid client id or client secret"}, 401)
        access, refresh = f"access-{secrets.token_hex(12)}", f"refresh-{secrets.token_hex(12)}"
        self.tokens[access] = time.monotonic() + self.token_life
        self.refreshes.add(refresh)
        return Answer(
            {
                "access_token": access,
                "refresh_token": refresh,
                "token_type": "Bearer",
                "expires_in": self.token_life,
                "scope": "cloud-api-v1",
            }
        )

    def _form(self, request: Request) -> dict[str, Any]:
        if request.headers["content-type"].startswith("application/json"):
            return dict(request.json)
        return {name: values[0] for name, values in parse_qs(request.raw.decode()).items()}

    @route("GET", "/v1/balance")
    def read_balance(self, request: Request) -> Answer:
        """Tell what is left."""
        return Answer({"amount": self.balance, "currency": "usd"})  # reference/verda.md §1

    # What is sold.

    @route("GET", "/v1/instance-types")
    def types(self, request: Request) -> Answer:
        """List the types."""
        return Answer(catalogue.TYPES)  # reference/verda.md §2

    @route("GET", "/v1/instance-availability")
    def availability(self, request: Request) -> Answer:
        """List what is left in each place, of one market."""
        # reference/verda.md §2: either spelling of the flag
        wanted = request.query.get("location_code")
        left = self._left(request)
        return Answer(
            [
                {"location_code": place, "availabilities": names}
                for place, names in left.items()
                if wanted in (None, place)
            ]
        )

    @route("GET", "/v1/instance-availability/{type}")
    def one_availability(self, request: Request) -> Answer:
        """Tell whether there is any of a type."""
        wanted, name = request.query.get("location_code"), request.path_values["type"]
        left = self._left(request)
        return Answer(any(name in names for place, names in left.items() if wanted in (None, place)))

    def _left(self, request: Request) -> dict[str, list[str]]:
        flag = request.query.get("isSpot") or request.query.get("is_spot") or "false"
        return self.spot if flag == "true" else self.on_demand

    @route("GET", "/v1/locations")
    def locations(self, request: Request) -> Answer:
        """List the places."""
        return Answer(catalogue.LOCATIONS)  # reference/verda.md §2

    @route("GET", "/v1/images")
    def images(self, request: Request) -> Answer:
        """List the images, or those that a type boots."""
        # reference/verda.md §2
        name = request.query.get("instance_type")
        fits = catalogue.BY_NAME.get(name, {}).get("supported_os", []) if name else None
        return Answer([row for row in catalogue.images() if fits is None or row["image_type"] in fits])

    # Keys and scripts: reference/verda.md §3. The path of keys has two spellings.

    @route("POST", "/v1/sshkeys")
    @route("POST", "/v1/ssh-keys")
    def add_key(self, request: Request) -> Answer:
        """Keep a key."""
        if self._closed(request):
            return self.missing
        if not str(request.json.get("key", "")).startswith("ssh-"):
            return invalid("Invalid ssh-key")
        return self._add(self.ssh_keys, {"name": request.json["name"], "key": request.json["key"], "fingerprint": "x"})

    @route("GET", "/v1/sshkeys")
    @route("GET", "/v1/ssh-keys")
    def list_keys(self, request: Request) -> Answer:
        """List the keys."""
        return self.missing if self._closed(request) else Answer(list(self.ssh_keys.values()))

    @route("GET", "/v1/sshkeys/{id}")
    @route("GET", "/v1/ssh-keys/{id}")
    def read_key(self, request: Request) -> Answer:
        """Tell about a key, in an array of one."""
        found = self.ssh_keys.get(request.path_values["id"])
        return Answer([found]) if found else invalid("Invalid ssh-key ID")

    @route("DELETE", "/v1/sshkeys/{id}")
    @route("DELETE", "/v1/ssh-keys/{id}")
    def drop_key(self, request: Request) -> Answer:
        """Forget a key; an unknown one is no error."""
        if self._closed(request):
            return self.missing
        self.ssh_keys.pop(request.path_values["id"], None)
        return Answer(None, 200)

    @route("DELETE", "/v1/sshkeys")
    @route("DELETE", "/v1/ssh-keys")
    def drop_keys(self, request: Request) -> Answer:
        """Forget several."""
        for name in request.json["keys"]:
            self.ssh_keys.pop(name, None)
        return Answer(None, 200)

    @route("POST", "/v1/scripts")
    def add_script(self, request: Request) -> Answer:
        """Keep a script."""
        return self._add(self.scripts, {"name": request.json["name"], "script": request.json["script"]})

    @route("GET", "/v1/scripts")
    def list_scripts(self, request: Request) -> Answer:
        """List the scripts."""
        return Answer(list(self.scripts.values()))

    @route("GET", "/v1/scripts/{id}")
    def read_script(self, request: Request) -> Answer:
        """Tell about a script, in an array of one."""
        found = self.scripts.get(request.path_values["id"])
        return Answer([found]) if found else invalid("Invalid script ID")

    @route("DELETE", "/v1/scripts/{id}")
    def drop_script(self, request: Request) -> Answer:
        """Forget a script."""
        self.scripts.pop(request.path_values["id"], None)
        return Answer(None, 200)

    @route("DELETE", "/v1/scripts")
    def drop_scripts(self, request: Request) -> Answer:
        """Forget several."""
        for name in request.json["scripts"]:
            self.scripts.pop(name, None)
        return Answer(None, 200)

    def _closed(self, request: Request) -> bool:
        path = self.refuses["path"]
        return bool(path) and f"{request.path}/".startswith(f"/v1/{path}/")

    def _add(self, where: dict[str, dict[str, Any]], row: dict[str, Any]) -> Answer:
        name = self._id()
        where[name] = {"id": name, **row, "created_at": _now()}
        return self._made(name)

    def _id(self) -> str:
        return f"{next(self._numbers):08x}-{secrets.token_hex(2)}-4000-8000-{secrets.token_hex(6)}"

    def _made(self, name: str) -> Answer:
        # reference/verda.md §1: bare text, and sometimes JSON
        return Answer({"plain": name, "quoted": f'"{name}"', "object": {"id": name}}[self.id_form], 201)

    # Instances.

    @route("POST", "/v1/instances")
    def launch(self, request: Request) -> Answer:
        """Rent one."""
        # reference/verda.md §4
        body = request.json
        for name in ("instance_type", "image", "hostname", "description"):
            if not body.get(name):
                return invalid(f"{name} should not be empty")
        kind, place, spot = body["instance_type"], body.get("location_code", "FIN-03"), bool(body.get("is_spot"))
        if kind not in catalogue.BY_NAME:
            return invalid("Invalid instance type")
        if len(body["hostname"]) > 60 or not body["hostname"].replace("-", "").isalnum():
            return invalid("Hostname is not valid")
        if not isinstance(body.get("ssh_key_ids"), list) or not set(body["ssh_key_ids"]) <= set(self.ssh_keys):
            return invalid("Invalid ssh-key ID")
        if body["image"] not in catalogue.BY_NAME[kind]["supported_os"] and not body["image"].startswith("image-"):
            return invalid("Operating system is not valid for this instance type")
        script = body.get("startup_script_id")
        if script is not None and script not in self.scripts:
            return invalid("Invalid startup script ID")
        volumes = [body.get("os_volume") or {"name": body["hostname"], "size": 50}, *(body.get("volumes") or ())]
        if not spot and any("on_spot_discontinue" in each for each in volumes):
            return invalid("on_spot_discontinue is only allowed for spot instances")
        if unusable := self.storage.refusal(body.get("existing_volumes") or (), place):
            return invalid(unusable)
        tags = body.get("tags") or []
        if self.refuses["tags"] and "tags" in body:
            return invalid("property tags should not exist")
        if overlong(tags):
            return invalid("tags are not valid")
        if kind not in (self.spot if spot else self.on_demand).get(place, ()):
            return no_capacity(kind, place)
        return self._made(self._rent(request, body, kind, place, spot, volumes, tags))

    def _rent(self, request: Request, body: dict[str, Any], kind: str, place: str, spot: bool, *more: Any) -> str:
        volumes, tags = more
        # Short, because the names of Unix sockets in a machine's directory have hardly more than a hundred characters.
        name, sold = self._id()[:13], catalogue.BY_NAME[kind]
        first, *others = [self.storage.rented(name, place, each, number) for number, each in enumerate(volumes)]
        self.rows[name] = {
            "id": name,
            "instance_type": kind,
            "hostname": body["hostname"],
            "description": body["description"],
            "status": "provisioning",
            "created_at": _now(),
            "ip": None,
            "location": place,
            "price_per_hour": float(sold["spot_price"] if spot else sold["price_per_hour"]),
            "is_spot": spot,
            "contract": body.get("contract") or ("SPOT" if spot else "PAY_AS_YOU_GO"),
            "pricing": body.get("pricing", "FIXED_PRICE"),
            "image": body["image"],
            "os_name": body["image"],
            "startup_script_id": body.get("startup_script_id"),
            "ssh_key_ids": body["ssh_key_ids"],
            "os_volume_id": first["id"],
            "volume_ids": [first["id"], *(each["id"] for each in others), *(body.get("existing_volumes") or ())],
            **{field: sold[field] for field in ("cpu", "gpu", "gpu_memory", "memory", "storage")},
            "jupyter_token": None,
            # Keys are kept in lower case.
            "tags": [{"id": self._id(), "key": tag["key"].lower(), "value": tag.get("value", "")} for tag in tags],
        }
        own = body.get("existing_volumes") or ()
        for volume in own:
            self.storage.attach(volume, name)
        if self.next_status or request.conditions.get("never"):
            # reference/verda.md §5: waiting for capacity, or none after all
            self.rows[name]["status"], self.next_status = self.next_status or "pending", ""
            return name
        keys = [self.ssh_keys[each]["key"] for each in body["ssh_key_ids"]]
        script = self.scripts[body["startup_script_id"]]["script"] if body.get("startup_script_id") else ""
        made = boot(keys, script, self.script_delay, catalogue.gpus(sold), request.conditions)
        scripted, storage = made.arrange, self.storage
        disks, shares, labels = storage.disks(own), storage.shares(own), storage.labels(own)

        def arrange(host: Host) -> None:
            scripted(host)
            plug(host, disks, shares, labels)

        made.arrange = arrange
        self.machines.begin(name, made)
        return name

    @route("GET", "/v1/instances")
    def list_instances(self, request: Request) -> Answer:
        """List all that are not deleted, in one bare array."""
        # reference/verda.md §5
        status = request.query.get("status")
        return Answer(
            [
                row
                for name, row in self.rows.items()
                if (row["status"] == status if status else row["status"] != "discontinued")
                and (name not in self.machines.all or self.shown(name))
            ]
        )

    @route("GET", "/v1/instances/{id}")
    def read_instance(self, request: Request) -> Answer:
        """Tell about one, also once it is discontinued."""
        row = self.rows.get(request.path_values["id"])  # reference/verda.md §8
        return Answer(row) if row else unknown_instance()

    @route("POST", "/v1/instances/{id}/tags")
    def tag(self, request: Request) -> Answer:
        """Write a tag that is not there yet."""
        # reference/verda.md §5
        row, given = self.rows.get(request.path_values["id"]), request.json
        if row is None or row["status"] in GONE:
            return unknown_instance()
        if any(tag["key"] == given["key"].lower() for tag in row["tags"]):
            return Answer({"code": "invalid_request", "message": "Tag key already exists"}, 409)
        row["tags"].append({"id": self._id(), "key": given["key"].lower(), "value": given.get("value", "")})
        return Answer(row["tags"][-1], 201)

    @route("DELETE", "/v1/instances/{id}/tags/{key}")
    def untag(self, request: Request) -> Answer:
        """Remove a tag."""
        row, key = self.rows.get(request.path_values["id"]), request.path_values["key"].lower()
        if row is None or row["status"] in GONE:
            return unknown_instance()
        if all(tag["key"] != key for tag in row["tags"]):
            return not_found("Tag not found")
        row["tags"] = [tag for tag in row["tags"] if tag["key"] != key]
        return Answer(None, 204)

    @route("PUT", "/v1/instances")
    def act(self, request: Request) -> Answer:
        """Delete instances, as far as that can be done; a success may hide failures."""
        # reference/verda.md §6
        body = request.json
        if body["action"] not in ("delete", "discontinue"):
            return invalid("Invalid action")
        ids = [body["id"]] if isinstance(body["id"], str) else body["id"]
        refused = {name: found for name in ids if (found := self._refusal(name)) is not None}
        if len(refused) == len(ids):
            return next(iter(refused.values()))
        done = []
        for name in ids:
            said = {"action": body["action"], "instanceId": name}
            if name in refused:
                answer = refused[name]
                done.append({**said, "status": "error", "error": answer.body["message"], "statusCode": answer.status})
                continue
            self.storage.ended(name, self.rows[name]["os_volume_id"], body)
            self._end(name)
            done.append({**said, "status": "success"})
        if refused:
            return Answer(done, 207)
        return Answer(None, 204) if len(ids) == 1 else Answer(done, 202)

    def _refusal(self, name: str) -> Answer | None:
        status = self.rows[name]["status"] if name in self.rows else None
        if status is None:
            return unknown_instance()
        if status == "provisioning":
            return provisioning()
        return gone() if status in GONE else None

    # Volumes.

    @route("GET", "/v1/volumes")
    def list_volumes(self, request: Request) -> Answer:
        """List those that are not in the trash."""
        return Answer(self.storage.listed(request.query.get("status")))  # reference/verda.md §9

    @route("GET", "/v1/volumes/trash")
    def list_trash(self, request: Request) -> Answer:
        """List those in the trash."""
        return Answer(self.storage.trash())

    @route("POST", "/v1/volumes")
    def add_volume(self, request: Request) -> Answer:
        """Make one."""
        body = request.json
        made = self.storage.make(body["name"], body["size"], body["type"], body.get("location_code", "FIN-03"))
        return self._made(made["id"])

    @route("GET", "/v1/volumes/{id}")
    def read_volume(self, request: Request) -> Answer:
        """Tell about one."""
        row = self.storage.rows.get(request.path_values["id"])
        return Answer(self.storage.shown(row)) if row else not_found("Volume not found")

    @route("DELETE", "/v1/volumes/{id}")
    def drop_volume(self, request: Request) -> Answer:
        """Delete one that no machine uses, for good or into the trash."""
        # reference/verda.md §9
        row = self.storage.rows.get(request.path_values["id"])
        if row is None:
            return not_found("Volume not found")
        if row["instance_id"] is not None:
            return invalid("Volume is attached to an instance")
        self.storage.drop(row["id"], permanently=bool((request.json or {}).get("is_permanent")))
        return Answer(None, 202)

    @route("GET", "/v1/volume-types")
    def volume_types(self, request: Request) -> Answer:
        """List what volumes cost."""
        return Answer([{"type": "NVMe", "price": {"price_per_month_per_gb": 0.2, "currency": "usd"}}])


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())


if __name__ == "__main__":
    serve(Verda, *sys.argv[1:])
