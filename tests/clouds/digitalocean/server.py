"""
DigitalOcean's API v2, as far as droplets are rented with it; "§" are sections of the reference page on DigitalOcean.

What that page calls unverified is answered here in the way that is worse for a client.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.clouds.contract import contract
from tests.clouds.digitalocean.storage import Storage
from tests.clouds.emulator import Answer, Emulator, Request, route, serve
from tests.clouds.hosting import Boot, Machine
from tests.clouds.volumes import plug, run_at_boot
from tests.hosts import Host

TOKEN = "dop_v1_0123456789abcdef"
VPC = "760e09ef-dc84-11e8-981e-3cfdfeaae000"
"""The one network that the account has."""

_NAME = re.compile(r"[a-zA-Z0-9.-]{1,255}")
_TAG = re.compile(r"[a-zA-Z0-9:_-]{1,255}")
_STATUS = {"pending": "new", "dead": "new", "running": "active", "stopped": "off", "ending": "active"}
_HOURLY, _BURST = 5000, 250
_KEY_LISTS = 10
"""How often the account's SSH keys may be listed in a minute."""

# Of a custom token, by what a path begins with; a list that no call is in is free for all.
_SCOPES: dict[tuple[str, str], set[str]] = {
    ("GET", "/v2/account/keys"): {"ssh_key:read"},
    ("POST", "/v2/account/keys"): {"ssh_key:create"},
    ("DELETE", "/v2/account/keys"): {"ssh_key:delete"},
    ("GET", "/v2/account"): {"account:read"},
    ("GET", "/v2/sizes"): {"sizes:read", "regions:read"},
    ("GET", "/v2/regions"): {"regions:read"},
    ("GET", "/v2/images"): {"image:read"},
    ("GET", "/v2/droplets"): {"droplet:read"},
    ("POST", "/v2/droplets"): {"droplet:create"},
    ("DELETE", "/v2/droplets"): {"droplet:delete"},
    ("GET", "/v2/tags"): {"tag:read"},
    ("POST", "/v2/tags"): {"tag:create"},
    ("DELETE", "/v2/tags"): {"tag:delete"},
    ("GET", "/v2/volumes"): {"block_storage:read"},
    ("GET", "/v2/vpcs"): {"vpc:read"},
}


def refusal(status: int, message: str, **more: Any) -> Answer:
    """Write an error; its id follows the status, §1."""
    kinds = {401: "unauthorized", 403: "forbidden", 404: "not_found", 422: "unprocessable_entity"}
    kinds |= {429: "too_many_requests"}
    return Answer(
        {"id": kinds.get(status, "server_error"), "message": message, "request_id": "4d9d8375", **more}, status
    )


GONE = "The resource you were accessing could not be found."


class DigitalOcean(Emulator):
    """Answer as DigitalOcean does."""

    missing = refusal(404, GONE)

    def __init__(self, folder: Path, network: str, url: str) -> None:
        super().__init__(folder, network, url)
        self.rows: dict[str, dict[str, Any]] = {}
        self.keys: dict[int, dict[str, Any]] = {}
        self.tags: dict[str, str] = {}
        self.storage = Storage(folder / "volumes")
        catalogue = json.loads(Path(__file__).with_name("catalogue.json").read_text(encoding="utf-8"))
        self.regions: list[str] = catalogue["regions"]
        self.images: list[str] = catalogue["images"]
        self.sizes: dict[str, dict[str, Any]] = {size["slug"]: size for size in catalogue["sizes"]}
        self.reset()

    # What a test asks for.

    def reset(self) -> None:
        """Forget limits."""
        self.times: list[float] = []
        self.burst = _BURST
        self.largest_page = 200
        self.droplet_limit = 200
        self.stock: dict[str, int] = {}
        self.scopes: list[str] | None = None
        self.key_lists: list[float] = []
        self.breaches: list[str] = []
        self.status = "active"
        self.storage.rows.clear()
        self.storage.lag = 0

    def control(self, what: str, given: Any) -> Any:
        """Set the limits of the account, or tell what is in it."""
        if what == "set":
            for name, value in given.items():
                setattr(self, name, value)
            return None
        if what == "breaches":
            return self.breaches
        if what == "keys":
            return list(self.keys.values())
        if what == "clear":
            self.keys.clear()
            self.tags.clear()
            return None
        if what == "tags":
            return sorted(self.tags.values())
        if what == "volume":
            row = self.storage.make(given["name"], self._region(given["region"]), given["kind"])
            row["droplet_ids"] = given["droplets"]
            return row
        if what == "volumes":
            return list(self.storage.rows.values())
        if what == "detaches":
            self.storage.lag = given
            return None
        raise ValueError(what)

    def facts(self, request: Request) -> dict[str, Any]:
        """Tell size, region and number of what is to be made."""
        body = request.json if request.raw.startswith(b"{") else {}
        return {"size": body.get("size"), "region": body.get("region"), "count": len(body.get("names") or "1")}

    def instances(self) -> list[dict[str, Any]]:
        """List every droplet there ever was."""
        found = []
        for name, row in self.rows.items():
            machine = self.machines.all[name]
            found.append(
                {
                    "id": name,
                    "name": row["name"],
                    "tags": self._tags_of(row),
                    "state": machine.state,
                    # §2: one that is off is billed in full; §4: a create that fails leaves nothing.
                    "alive": machine.state not in ("ended", "dead"),
                    "spot": False,
                    "size": row["size_slug"],
                    "region": row["region"]["slug"],
                    "image": row["image"]["slug"],
                    "base": str(self.machines.folder / name),
                    "user_data": row["user_data"],
                }
            )
        return found

    # §1: who asks, and how often.

    def authorize(self, request: Request) -> Answer | None:
        """Refuse a token that is wrong, that may not do this, or that asks too often."""
        if not re.fullmatch(rf"Bearer {TOKEN}\w*", request.headers.get("authorization", "")):
            return refusal(401, "Unable to authenticate you")
        now = time.monotonic()
        with self.lock:
            self.times = [at for at in self.times if now - at < 3600.0]
            lately = [at for at in self.times if now - at < 60.0]
            if len(lately) >= self.burst:
                answer = refusal(429, "API rate limit exceeded.")
                answer.headers["Retry-After"] = str(int(60.0 - (now - lately[0])) + 1)
                return answer
            self.times.append(now)
        if self.scopes is not None and (missing := self._scopes(request) - set(self.scopes)):
            return refusal(403, f"You are missing the required permission {min(missing)}.")
        if (request.method, request.path) == ("GET", "/v2/account/keys"):
            self.key_lists = [at for at in self.key_lists if now - at < 60.0]
            if len(self.key_lists) >= _KEY_LISTS:
                return Answer(refusal(429, "API rate limit exceeded.").body, 429, {"Retry-After": "60"})
            self.key_lists.append(now)
        return None

    def _scopes(self, request: Request) -> set[str]:
        """Say which scopes a call needs: those that are written, and those of what is in its body."""
        front = next((way for way in _SCOPES if way[0] == request.method and request.path.startswith(way[1])), None)
        found = set(_SCOPES[front]) if front is not None else set()
        body = request.json if request.raw.startswith(b"{") else {}
        if (request.method, request.path) == ("POST", "/v2/droplets"):
            found |= {"image:read"}
            for name, scope in (("ssh_keys", "ssh_key:read"), ("tags", "tag:create"), ("vpc_uuid", "vpc:read")):
                found |= {scope} if body.get(name) else set()
        if request.method == "POST" and request.path.endswith("/resources"):
            found |= {f"{each['resource_type']}:update" for each in body["resources"]}
        return found

    def _answer(self, request: Request, met: Any) -> Answer:
        """Hold question and answer against DigitalOcean's own description, where that is present."""
        answer = super()._answer(request, met)
        known = contract("digitalocean.json")
        # It leaves out VPCs, and what is refused may be wrong.
        if known is not None and answer.status < 400 and not request.path.startswith("/v2/vpcs"):
            faults = known.request_faults(request.method, request.path, request.query, request.json)
            faults += known.answer_faults(request.method, request.path, answer.status, answer.body)
            with self.lock:
                self.breaches += [f"{request.method} {request.path} {answer.status}: {fault}" for fault in faults]
        return answer

    def headers(self, request: Request) -> dict[str, str]:
        """Tell what is left of the hour, and when the oldest request counts no more."""
        oldest = self.times[0] if self.times else time.monotonic()
        reset = int(time.time() + 3600.0 - (time.monotonic() - oldest))
        left = str(max(0, _HOURLY - len(self.times)))
        return {"ratelimit-limit": str(_HOURLY), "ratelimit-remaining": left, "ratelimit-reset": str(reset)}

    @route("GET", "/v2/account")
    def account(self, request: Request) -> Answer:
        """Tell about the account, §1."""
        message = "Ask support." if self.status == "locked" else ""
        facts = {"droplet_limit": self.droplet_limit, "email": "me@example.com", "status": self.status}
        facts |= {"floating_ip_limit": 5, "email_verified": True, "uuid": "b6fr89dbf6d9156cace5f3c78dc9851d957381ef"}
        return Answer({"account": {**facts, "status_message": message}})

    @route("GET", "/v2/vpcs/{id}")
    def vpc(self, request: Request) -> Answer:
        """Tell about a network; every region has one."""
        name = request.path_values["id"]
        return Answer({"vpc": {"id": name, "name": "default-nyc1"}}) if name == VPC else self.missing

    # §2: what is sold.

    @route("GET", "/v2/sizes")
    def list_sizes(self, request: Request) -> Answer:
        """List the sizes."""
        return self._page(
            request, "sizes", [{"available": True, "transfer": 1.0, **each} for each in self.sizes.values()]
        )

    @route("GET", "/v2/regions")
    def list_regions(self, request: Request) -> Answer:
        """List the regions."""
        return self._page(request, "regions", [self._region(slug) for slug in self.regions])

    @route("GET", "/v2/images")
    def list_images(self, request: Request) -> Answer:
        """List the images, §3."""
        return self._page(request, "images", [self._image(slug) for slug in self.images])

    # §3: keys.

    @route("GET", "/v2/account/keys")
    def list_keys(self, request: Request) -> Answer:
        """List the keys."""
        return self._page(request, "ssh_keys", list(self.keys.values()))

    @route("POST", "/v2/account/keys")
    def add_key(self, request: Request) -> Answer:
        """Take a key; the same material again is refused."""
        public = request.json["public_key"]
        words = public.split()
        if len(words) < 2:
            return refusal(422, "Key invalid, key should be of the format `type key [comment]`")
        digest = hashlib.md5(base64.b64decode(words[1]), usedforsecurity=False).hexdigest()
        print_of = ":".join(digest[start : start + 2] for start in range(0, 32, 2))
        if any(key["fingerprint"] == print_of for key in self.keys.values()):
            return refusal(422, "SSH Key is already in use on your account")
        number = 512189 + len(self.calls)
        self.keys[number] = {"id": number, "fingerprint": print_of, "public_key": public, "name": request.json["name"]}
        return Answer({"ssh_key": self.keys[number]}, 201)

    @route("DELETE", "/v2/account/keys/{key}")
    def remove_key(self, request: Request) -> Answer:
        """Remove a key by its id or fingerprint."""
        key = self._key(request.path_values["key"])
        if key is None:
            return self.missing
        del self.keys[key["id"]]
        return Answer(None, 204)

    # §4: create.

    @route("POST", "/v2/droplets")
    def create(self, request: Request) -> Answer:
        """Accept an order: 202, and the droplets are new."""
        body = request.json
        names = body.get("names") or [body.get("name") or ""]
        refused = self._refused(body, names)
        if refused is not None:
            return refused
        made = [self._made(body, name, request) for name in names]
        actions = [
            {"id": row["id"] + 1, "rel": "create", "href": f"{self.url}/v2/actions/{row['id'] + 1}"} for row in made
        ]
        rows = [self._shown(row) for row in made]
        several = {"droplets": rows} if "names" in body else {"droplet": rows[0]}
        return Answer({**several, "links": {"actions": actions}}, 202)

    @route("GET", "/v2/actions/{action}")
    def action(self, request: Request) -> Answer:
        """Tell how far an order is."""
        name = str(int(request.path_values["action"]) - 1)
        if name not in self.rows:
            return self.missing
        states = {"pending": "in-progress", "dead": "errored"}
        status = states.get(self.machines.all[name].state, "completed")
        facts = {"id": int(name) + 1, "type": "create", "resource_type": "droplet", "resource_id": int(name)}
        return Answer({"action": {**facts, "status": status}})

    # §5: poll, list, end.

    @route("GET", "/v2/droplets")
    def list_droplets(self, request: Request) -> Answer:
        """List droplets; those with GPUs only where they are asked for, and never by tag."""
        query = request.query
        if "tag_name" in query and ("type" in query or "name" in query):
            return refusal(422, "tag_name may not be combined with type or name")
        rows = [row for name, row in self.rows.items() if self._is_there(name) and self.shown(name)]
        gpus = query.get("type") == "gpus"
        rows = [row for row in rows if self._has_gpu(row) == gpus]
        if "tag_name" in query:
            rows = [row for row in rows if query["tag_name"] in self._tags_of(row)]
        if "name" in query:
            rows = [row for row in rows if row["name"].lower() == query["name"].lower()]
        return self._page(request, "droplets", [self._shown(row) for row in rows])

    @route("DELETE", "/v2/droplets")
    def delete_tagged(self, request: Request) -> Answer:
        """Delete all with a tag."""
        for name, row in self.rows.items():
            if self._is_there(name) and request.query["tag_name"] in self._tags_of(row) and not self._has_gpu(row):
                self.machines.end(name)
        return Answer(None, 204)

    @route("GET", "/v2/droplets/{id}")
    def show(self, request: Request) -> Answer:
        """Show one."""
        name = request.path_values["id"]
        return Answer({"droplet": self._shown(self.rows[name])}) if self._is_there(name) else self.missing

    @route("DELETE", "/v2/droplets/{id}")
    def delete(self, request: Request) -> Answer:
        """Delete one; again is 404."""
        name = request.path_values["id"]
        if not self._is_there(name) or self.machines.all[name].state == "ending":
            return self.missing
        self.machines.end(name)
        return Answer(None, 204)

    # Tags, as DigitalOcean's public description of its API has them.

    @route("GET", "/v2/tags")
    def list_tags(self, request: Request) -> Answer:
        """List every tag that was ever used, and how many bear it."""
        return self._page(request, "tags", [self._tag(tag) for tag in self.tags.values()])

    @route("POST", "/v2/tags")
    def add_tag(self, request: Request) -> Answer:
        """Make a tag; the first spelling wins, §4."""
        name = request.json["name"]
        if not _TAG.fullmatch(name):
            return refusal(422, "Name has invalid characters")
        self.tags.setdefault(name.lower(), name)
        return Answer({"tag": self._tag(self.tags[name.lower()])}, 201)

    @route("POST", "/v2/tags/{tag}/resources")
    def tag_resources(self, request: Request) -> Answer:
        """Put a tag on droplets."""
        tag = request.path_values["tag"]
        if tag not in self.tags.values():
            return self.missing
        names = [str(each["resource_id"]) for each in request.json["resources"]]
        if not all(map(self._is_there, names)):
            return self.missing
        for name in names:
            self.rows[name]["tags"] = sorted({*self._tags_of(self.rows[name]), tag})
        return Answer(None, 204)

    @route("DELETE", "/v2/tags/{tag}")
    def remove_tag(self, request: Request) -> Answer:
        """Take a tag from all that bear it, and forget it."""
        tag = request.path_values["tag"]
        if self.tags.pop(tag.lower(), None) is None:
            return self.missing
        return Answer(None, 204)

    # Volumes, as DigitalOcean's public description of its API has them.

    @route("GET", "/v2/volumes")
    def list_volumes(self, request: Request) -> Answer:
        """List volumes, or those of a name or region."""
        rows = [self.storage.shown(row) for row in self.storage.rows.values()]
        wanted = request.query
        rows = [row for row in rows if wanted.get("name") in (None, row["name"])]
        rows = [row for row in rows if wanted.get("region") in (None, row["region"]["slug"])]
        return self._page(request, "volumes", rows)

    @route("POST", "/v2/volumes")
    def add_volume(self, request: Request) -> Answer:
        """Make a volume, with a filesystem where one is asked for."""
        body = request.json
        made = self.storage.make(
            body["name"], self._region(body["region"]), body.get("filesystem_type", ""), body["size_gigabytes"]
        )
        return Answer({"volume": made}, 201)

    @route("GET", "/v2/volumes/{id}")
    def show_volume(self, request: Request) -> Answer:
        """Show one."""
        row = self.storage.rows.get(request.path_values["id"])
        return Answer({"volume": self.storage.shown(row)}) if row else self.missing

    @route("DELETE", "/v2/volumes/{id}")
    def delete_volume(self, request: Request) -> Answer:
        """Delete one that no droplet has."""
        row = self.storage.rows.get(request.path_values["id"])
        if row is None:
            return self.missing
        if row["droplet_ids"]:
            return refusal(409, "volume is attached to a droplet")
        del self.storage.rows[row["id"]]
        return Answer(None, 204)

    # What stands behind all that.

    def changed(self, machine: Machine) -> None:
        """Have an action on the droplet lock it while it lasts."""
        self.rows[machine.name]["locked"] = machine.state in ("pending", "ending")
        if machine.state in ("ended", "dead"):
            self.storage.leave(int(machine.name))

    def _refused(self, body: dict[str, Any], names: list[str]) -> Answer | None:
        size, region, alive = self.sizes.get(body.get("size", "")), body.get("region"), 0
        alive = sum(each["alive"] for each in self.instances())
        tests: list[tuple[Callable[[], bool], str]] = [
            (lambda: not all(_NAME.fullmatch(name) for name in names), "Only valid hostname characters are allowed."),
            (lambda: len(names) > 10, "You may create up to 10 droplets at once."),
            (lambda: size is None, "You specified an invalid size for Droplet creation."),
            (lambda: region not in self.regions, "Region is not valid."),
            (lambda: not self._image_known(body.get("image")), "You specified an invalid image for Droplet creation."),
            (lambda: not all(_TAG.fullmatch(tag) for tag in body.get("tags") or ()), "Tag has invalid characters."),
            (
                lambda: any(self._key(str(key)) is None for key in body.get("ssh_keys") or ()),
                f"{(body.get('ssh_keys') or [''])[0]} are invalid key identifiers for Droplet creation.",
            ),
            (lambda: body.get("vpc_uuid") not in (None, VPC), "VPC is invalid."),
            (lambda: self._is_gpu_size(size) and not body.get("ssh_keys"), "GPU droplets need a key."),
            (lambda: len(body.get("user_data") or "") > 64 * 1024, "user_data is too long."),
            (
                lambda: alive + len(names) > self.droplet_limit,
                "creating this/these droplet(s) will exceed your droplet limit",
            ),
        ]
        for wrong, message in tests:
            if wrong():
                return refusal(422, message)
        if unusable := self.storage.refusal(body.get("volumes") or (), str(region), len(names)):
            return refusal(422, unusable)
        # §6: capacity shares the status with all of these.
        assert size is not None
        left = self.stock.get(f"{body['size']}/{region}", len(names))
        if region not in size["regions"] or left < len(names):
            more = {"error_attributes": {"available_regions": [each for each in size["regions"] if each != region]}}
            return refusal(422, "Size is not available in this region.", **more)
        if f"{body['size']}/{region}" in self.stock:
            self.stock[f"{body['size']}/{region}"] -= len(names)
        return None

    def _made(self, body: dict[str, Any], name: str, request: Request) -> dict[str, Any]:
        number = 3164444 + 2 * len(self.rows)
        for tag in body.get("tags") or ():
            self.tags.setdefault(tag.lower(), tag)
        row = {
            "id": number,
            "name": name,
            "size_slug": body["size"],
            "region": self._region(body["region"]),
            "image": self._image(str(body["image"])),
            "tags": [self.tags[tag.lower()] for tag in body.get("tags") or ()],
            "user_data": body.get("user_data") or "",
            "locked": True,
            "created_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        self.rows[str(number)] = row
        self.storage.attach(body.get("volumes") or (), number)
        self.machines.begin(str(number), self._boot(body, request))
        return row

    def _boot(self, body: dict[str, Any], request: Request) -> Boot:
        found = [self._key(str(key)) for key in body.get("ssh_keys") or ()]
        boot = Boot(keys=[key["public_key"] for key in found if key], conditions=request.conditions)
        info = self.sizes[body["size"]].get("gpu_info") or {}
        if info.get("model", "").startswith("nvidia") and "gpu-h100" in str(body["image"]):
            # Only these images have the driver, §3.
            boot.gpus = ["NVIDIA H100 80GB HBM3, 81559"] * info["count"]
        data = body.get("user_data") or ""
        if data.startswith("#cloud-config\n"):
            config = json.loads(data.removeprefix("#cloud-config\n"))
            boot.keys = [*boot.keys, *config.get("ssh_authorized_keys", ())]
            own = config.get("ssh_keys", {})
            boot.private, boot.public = own.get("ed25519_private"), own.get("ed25519_public")
            boot.commands = config.get("runcmd", ())
            # What is for every boot; what is for the first of a copied machine has nothing to do here.
            scripts = [words[2] for words in config.get("bootcmd", ()) if words[:2] == ["sh", "-c"]]
            disks = self.storage.disks(body.get("volumes") or ())

            def arrange(host: Host) -> None:
                plug(host, disks)
                for script in scripts:
                    run_at_boot(host, script)

            boot.arrange = arrange
        return boot

    def _shown(self, row: dict[str, Any]) -> dict[str, Any]:
        """Show a droplet: without addresses while it is new, with the private one first later, §5."""
        machine = self.machines.all[str(row["id"])]
        status = _STATUS[machine.state]
        size = self.sizes[row["size_slug"]]
        # Of loopback, so that nodes do reach each other.
        private = f"127.16.{row['id'] // 250 % 250}.{row['id'] % 250}"
        pair = [
            {"ip_address": private, "netmask": "255.255.240.0", "gateway": "nil", "type": "private"},
            {"ip_address": machine.address, "netmask": "255.255.240.0", "gateway": "127.0.0.1", "type": "public"},
        ]
        return {
            **{name: value for name, value in row.items() if name != "user_data"},
            "tags": self._tags_of(row),
            "memory": size["memory"],
            "vcpus": size["vcpus"],
            "disk": size["disk"],
            "status": status,
            "kernel": None,
            "features": ["droplet_agent", "private_networking"],
            "backup_ids": [],
            "snapshot_ids": [],
            "volume_ids": [each["id"] for each in self.storage.of(row["id"])],
            "size": {"available": True, "transfer": 1.0, **size},
            "networks": {"v4": [] if status == "new" else pair, "v6": []},
            "vpc_uuid": VPC,
            "next_backup_window": None,
        }

    def _page(self, request: Request, key: str, rows: list[Any]) -> Answer:
        """Show a page of a list; `links.pages` only where there are several, §1."""
        size, page = int(request.query.get("per_page", 20)), int(request.query.get("page", 1))
        if not 1 <= size <= 200:
            return refusal(422, "per_page must be from 1 to 200")
        size = min(size, self.largest_page)
        body: dict[str, Any] = {key: rows[(page - 1) * size : page * size], "meta": {"total": len(rows)}, "links": {}}
        last = max(1, -(-len(rows) // size))
        ways = {"next": page + 1, "last": last} if page < last else {}
        ways |= {"prev": page - 1, "first": 1} if page > 1 else {}
        if ways:
            front = f"{self.url}{request.path}?per_page={size}&page="
            body["links"] = {"pages": {name: f"{front}{number}" for name, number in ways.items()}}
        return Answer(body)

    def _is_there(self, name: str) -> bool:
        # §4: a create that fails is seen by the droplet vanishing.
        return name in self.rows and self.machines.all[name].state not in ("ended", "dead")

    def _has_gpu(self, row: dict[str, Any]) -> bool:
        return self._is_gpu_size(self.sizes[row["size_slug"]])

    def _is_gpu_size(self, size: dict[str, Any] | None) -> bool:
        return size is not None and "gpu_info" in size

    def _tags_of(self, row: dict[str, Any]) -> list[str]:
        return [tag for tag in row["tags"] if tag in self.tags.values()]

    def _tag(self, tag: str) -> dict[str, Any]:
        count = sum(tag in row["tags"] for name, row in self.rows.items() if self._is_there(name))
        return {"name": tag, "resources": {"count": count, "droplets": {"count": count}}}

    def _key(self, name: str) -> dict[str, Any] | None:
        return next((key for key in self.keys.values() if name in (str(key["id"]), key["fingerprint"])), None)

    def _region(self, slug: str) -> dict[str, Any]:
        sold = [size["slug"] for size in self.sizes.values() if slug in size["regions"]]
        return {"slug": slug, "name": slug.upper(), "available": True, "features": ["metadata"], "sizes": sold}

    def _image(self, slug: str) -> dict[str, Any]:
        facts = {"id": 6918990 + len(slug), "name": slug, "slug": slug, "public": True, "type": "base"}
        return {**facts, "distribution": "Ubuntu", "regions": self.regions, "min_disk_size": 25, "status": "available"}

    def _image_known(self, image: Any) -> bool:
        return isinstance(image, int) or image in self.images


if __name__ == "__main__":
    serve(DigitalOcean, *sys.argv[1:])
