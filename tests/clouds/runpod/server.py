"""
RunPod's REST v2 over real HTTP, with a real SSH host for each pod, and faults on purpose.

    python -m tests.clouds.runpod.server FOLDER NETWORK

It follows reference/runpod.md and RunPod's OpenAPI document, and imports nothing of ours.
Where that document is present, every request and answer is held against it.
"""

from __future__ import annotations

import itertools
import re
import shlex
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import define, field

from tests.clouds.contract import contract
from tests.clouds.emulator import Answer, Emulator, Request, route, serve
from tests.clouds.hosting import Boot, Machine
from tests.clouds.runpod.catalogue import DATA_CENTERS, Catalogue, problem
from tests.clouds.volumes import bind

PROVISIONING = 0.2
"""Seconds in which a pod has no machine yet."""

FULL = "There are no longer any instances available with the requested specifications. Please refresh and try again."
_FIELDS = {
    "name": str, "image": str, "gpu": dict, "cpu": dict, "cloud": str, "dataCenterIds": list, "args": str, "disk": int,
    "ports": list, "env": dict, "registry": (str, type(None)), "mounts": dict, "globalNetworking": bool,
    "startSsh": bool, "startJupyter": bool, "templateId": str,
}  # fmt: skip
_MOUNTS = ("persistent", "network")
_ACTIONS = {"RUNNING": ["stop", "restart", "terminate"], "EXITED": ["start", "terminate"]}


@define(eq=False)
class Pod:
    """One pod."""

    id: str
    body: dict[str, Any]
    cost: float
    place: str
    created: datetime = field(factory=lambda: datetime.now(UTC))
    state: str = "PROVISIONING"
    cluster: str = ""
    running_since: float = 0.0


class RunPod(Emulator):
    """REST v2."""

    missing = problem(404, "resource not found")

    def __init__(self, folder: Path, network: str, url: str) -> None:
        super().__init__(folder, network, url)
        self.catalogue = Catalogue()
        self.pods: dict[str, Pod] = {}
        self.clusters: dict[str, str] = {}
        self.volumes: dict[str, dict[str, Any]] = {}
        self.keys = ["ssh-ed25519 AAAA somebody@else"]
        self.breaches: list[str] = []
        self.policy: tuple[int, float] = (100_000, 60.0)
        self.spent: list[float] = []
        self.numbers = itertools.count(1)

    # What the base asks for.

    def authorize(self, request: Request) -> Answer | None:
        """Let in a client with a key of the account, and a pod at itself."""
        kind, _, key = request.headers.get("authorization", "").partition(" ")
        if kind != "Bearer" or not key:
            return problem(401, "missing bearer token")  # §6
        own = key.partition("rps_")[2]
        if own:
            # §4: the key in a pod is good for that pod.
            mine = request.path == f"/v2/pods/{own}" and own in self.pods
            return None if mine else problem(403, "access denied")
        return None if key.startswith("rpa_") else problem(401, "invalid bearer token")

    def facts(self, request: Request) -> dict[str, Any]:
        """Tell what is asked for."""
        body = request.json if request.method == "POST" else None
        body = body if isinstance(body, dict) else {}
        own = "rps_" in request.headers.get("authorization", "")
        return {"gpu": body.get("gpu", {}).get("id"), "cloud": body.get("cloud"), "own": own, **request.query}

    def headers(self, request: Request) -> dict[str, str]:
        """Return what every answer has (§1)."""
        most, window = self.policy
        now = time.monotonic()
        self.spent = [at for at in self.spent if now - at < window]
        reset = round(window - (now - self.spent[0])) if self.spent else round(window)
        return {
            "x-request-id": uuid.uuid4().hex,
            "RateLimit": f'"minute";r={max(0, most - len(self.spent))};t={max(1, reset)}',
            "RateLimit-Policy": f'"minute";q={most};w={round(window)}',
        }

    def _answer(self, request: Request, met: Any) -> Answer:
        """Count the call, and hold question and answer against the contract."""
        with self.lock:
            self.spent.append(time.monotonic())
            self.headers(request)
            if len(self.spent) > self.policy[0]:
                return Answer(
                    problem(429, "rate limit exceeded for the minute window").body, 429, {"Retry-After": "1"}
                )  # §1, §6
        answer = super()._answer(request, met)
        known = contract("runpod-v2.json")
        if known is not None and answer.status != 404:
            asked = known.request_faults(request.method, request.path, request.query, request.json)
            # What is refused may be wrong.
            faults = asked if answer.status < 400 else []
            faults += known.answer_faults(request.method, request.path, answer.status, answer.body)
            with self.lock:
                self.breaches += [f"{request.method} {request.path} {answer.status}: {fault}" for fault in faults]
        return answer

    def instances(self) -> list[dict[str, Any]]:
        """Return every pod there ever was."""
        return [
            {
                "id": pod.id,
                "name": pod.body["name"],
                "alive": pod.state != "TERMINATED",
                "state": pod.state,
                "spot": False,
                "tags": {},
                "gpu": pod.body.get("gpu"),
                "cpu": pod.body.get("cpu"),
                "cloud": pod.body.get("cloud", "SECURE"),
                "body": pod.body,
                "base": str(self.machines.folder / pod.id),
                "address": self.machines.all[pod.id].address,
            }
            for pod in self.pods.values()
        ]

    def changed(self, machine: Machine) -> None:
        """Write down that a pod's machine has another state."""
        pod = self.pods[machine.name]
        if pod.state == "TERMINATED":
            return
        states = {
            "running": "RUNNING",
            "dead": "ERROR",
            "stopped": "EXITED",
            "ending": pod.state,
            "ended": "TERMINATED",
        }
        pod.state = states[machine.state]
        if pod.state == "RUNNING":
            pod.running_since = time.monotonic()

    def reset(self) -> None:
        """Have everything in stock, and all calls allowed."""
        self.catalogue.stock.clear()
        self.policy = 100_000, 60.0
        self.spent.clear()
        self.breaches.clear()
        self.volumes.clear()

    def control(self, what: str, given: Any) -> Any:
        """Do what only the tests of this cloud ask for."""
        if what == "stock":
            self.catalogue.stock |= given
        elif what == "policy":
            self.policy = given[0], given[1]
        elif what == "breaches":
            return self.breaches
        elif what == "keys":
            return self.keys
        elif what == "cluster":
            return [self._make_cluster(given)]
        elif what == "stop":
            self.machines.stop(given)
        elif what == "volumes":
            self.volumes = {row["id"]: row for row in given}
        else:
            return super().control(what, given)
        return None

    # §2: what is sold.

    @route("GET", "/v2/catalog/gpus")
    def gpus(self, request: Request) -> Answer:
        """List kinds of GPUs."""
        return self.catalogue.gpus(request)

    @route("GET", "/v2/catalog/cpus")
    def cpus(self, request: Request) -> Answer:
        """List kinds of processors."""
        return self.catalogue.cpus(request)

    @route("GET", "/v2/catalog/datacenters")
    def data_centers(self, request: Request) -> Answer:
        """List places."""
        return self.catalogue.data_centers(request)

    # §3: the account's keys.

    @route("GET", "/v2/account/ssh-keys")
    def ssh_keys(self, request: Request) -> Answer:
        """List the account's keys."""
        return Answer({"keys": self.keys})

    @route("PUT", "/v2/account/ssh-keys")
    def write_ssh_keys(self, request: Request) -> Answer:
        """Put other keys in the place of all there are."""
        self.keys = list(request.json["keys"])
        return Answer({"keys": self.keys})

    # §4: launch.

    @route("POST", "/v2/pods")
    def create(self, request: Request) -> Answer:
        """Rent a pod."""
        body = request.json
        if errors := _schema_faults(body):
            return problem(422, "Request validation failed.", errors)
        if ("gpu" in body) == ("cpu" in body):
            return problem(400, "exactly one of gpu or cpu must be set")
        cloud, place = body.get("cloud", "SECURE"), self._place(body)
        if refused := self._mounted(body, place):
            return refused
        if "gpu" in body:
            gpu, count = body["gpu"]["id"], body["gpu"].get("count", 1)
            if not self.catalogue.places(gpu):
                return problem(400, f"GPU type {gpu} does not exist")
            if self.catalogue.left(gpu, cloud) < count or place is None:
                return problem(400, FULL)
            cost = self.catalogue.price(gpu, cloud) * count
        else:
            if why := self.catalogue.cpu_refusal(body["cpu"], body.get("disk", 1)):
                return problem(400, why)
            if "persistent" in body.get("mounts", {}):
                return problem(400, "this CPU flavor cannot be deployed so")
            flavour, vcpus = self.catalogue.cpu(body["cpu"]["id"]), body["cpu"]["vcpuCount"]
            assert flavour is not None
            if self.catalogue.stock.get(body["cpu"]["id"], 99) < vcpus:
                return problem(400, FULL)
            cost = flavour[2] * vcpus
        pod = Pod(f"pod{next(self.numbers)}x{uuid.uuid4().hex[:6]}", body, cost, place or "EU-RO-1")
        self._begin(pod, request.conditions)
        return Answer(self._row(pod), 201)

    # §9: network volumes.

    @route("GET", "/v2/network-volumes")
    def list_volumes(self, request: Request) -> Answer:
        """List the account's network volumes."""
        return Answer({"networkVolumes": list(self.volumes.values())})

    @route("GET", "/v2/network-volumes/{id}")
    def volume(self, request: Request) -> Answer:
        """Describe one."""
        row = self.volumes.get(request.path_values["id"])
        return Answer(row) if row is not None else problem(404, "network volume not found")

    @route("DELETE", "/v2/network-volumes/{id}")
    def delete_volume(self, request: Request) -> Answer:
        """Delete one with all that is in it."""
        gone = self.volumes.pop(request.path_values["id"], None) is not None
        return Answer(None, 204) if gone else problem(404, "network volume not found")

    def _mounted(self, body: dict[str, Any], place: str | None) -> Answer | None:
        """Refuse network volumes that a pod cannot have (§4, §9); nothing says what is full and what is elsewhere."""
        mounts = body.get("mounts", {})
        if len(mounts) > 1 or len(mounts.get("network", ())) > 1:
            return problem(400, "mounts.persistent and mounts.network are mutually exclusive, and one of each")
        for each in mounts.get("network", ()):
            if each["volumeId"] not in self.volumes:
                return problem(404, "network volume not found")
            if body.get("cloud", "SECURE") != "SECURE":
                return problem(400, "network volumes are available in Secure Cloud only")
            if self.volumes[each["volumeId"]]["dataCenter"] != place:
                return problem(400, FULL)
        return None

    def _place(self, body: dict[str, Any]) -> str | None:
        """Choose a data centre; outside the list it fails, and nothing says so (§4, §6)."""
        asked = body.get("dataCenterIds") or list(DATA_CENTERS)
        reached = [
            place for place in asked if not body.get("globalNetworking") or DATA_CENTERS.get(place, (0, 0, 0))[2]
        ]
        able = self.catalogue.places(body["gpu"]["id"]) if "gpu" in body else tuple(DATA_CENTERS)
        return next((place for place in reached if place in able), None)

    def _begin(self, pod: Pod, conditions: dict[str, Any]) -> None:
        for each in pod.body.get("mounts", {}).get("network", ()):
            folder = self.machines.folder / f"volume-{each['volumeId']}"
            folder.mkdir(exist_ok=True)
            bind(each["path"], folder)
        self.pods[pod.id] = pod
        # §4: variables inside a pod; the key is good for this pod only.
        env = {"RUNPOD_POD_ID": pod.id, "RUNPOD_API_KEY": f"rps_{pod.id}", "RUNPOD_DC_ID": pod.place}
        # The arguments replace the image's command (§4); an image that is given none sleeps.
        words = shlex.split(pod.body.get("args", "")) or ["sleep", "600"]
        env |= pod.body.get("env", {})
        gpus = self.catalogue.reported(pod.body["gpu"]) if "gpu" in pod.body else []
        self.machines.begin(pod.id, Boot(entry=words, env=env, gpus=gpus, conditions=conditions))

    # §5: poll, list, terminate.

    @route("GET", "/v2/pods")
    def pods_list(self, request: Request) -> Answer:
        """List pods; those of clusters only if they are asked for."""
        also = request.query.get("includeClusterPods") == "true"
        rows = [
            self._row(pod)
            for pod in self.pods.values()
            if pod.state != "TERMINATED" and self.shown(pod.id) and (also or not pod.cluster)
        ]
        return Answer({"pods": rows})

    @route("GET", "/v2/pods/{id}")
    def pod(self, request: Request) -> Answer:
        """Describe a pod."""
        pod = self._known(request)
        return Answer(self._row(pod)) if pod is not None else problem(404, "pod not found")

    @route("DELETE", "/v2/pods/{id}")
    def delete(self, request: Request) -> Answer:
        """End a pod: 204 and no body."""
        pod = self._known(request)
        if pod is None:
            return problem(404, "pod not found")
        if pod.cluster:
            return problem(409, "pod belongs to a cluster and cannot be terminated here")
        self._end(pod)
        return Answer(None, 204)

    def _end(self, pod: Pod) -> None:
        pod.state = "TERMINATED"
        self.machines.end(pod.id)

    def terminate(self, name: str) -> None:
        """End a pod behind everybody's back."""
        self._end(self.pods[name])

    def _known(self, request: Request) -> Pod | None:
        pod = self.pods.get(request.path_values["id"])
        return pod if pod is not None and pod.state != "TERMINATED" else None

    # §8: clusters.

    @route("GET", "/v2/clusters")
    def clusters_list(self, request: Request) -> Answer:
        """List clusters."""
        return Answer({"clusters": [self._cluster_row(name) for name in self.clusters]})

    @route("DELETE", "/v2/clusters/{id}")
    def delete_cluster(self, request: Request) -> Answer:
        """End a cluster with all its pods."""
        name = request.path_values["id"]
        if self.clusters.pop(name, None) is None:
            return problem(404, "cluster not found")
        for pod in self.pods.values():
            if pod.cluster == name:
                self._end(pod)
        return Answer(None, 204)

    def _make_cluster(self, names: list[str]) -> str:
        """Make a cluster as a person would in the console."""
        cluster = f"cluster{next(self.numbers)}"
        self.clusters[cluster] = names[0]
        for name in names:
            body = {"name": name, "image": "i", "gpu": {"id": "NVIDIA H100 80GB HBM3", "count": 8}, "ports": []}
            pod = Pod(f"pod{next(self.numbers)}x{uuid.uuid4().hex[:6]}", body, 23.92, "US-KS-2", cluster=cluster)
            self._begin(pod, {"refuse": True})
        return cluster

    def _cluster_row(self, name: str) -> dict[str, Any]:
        members = [pod for pod in self.pods.values() if pod.cluster == name and pod.state != "TERMINATED"]
        return {
            "id": name,
            "name": self.clusters[name],
            "type": "TRAINING",
            "compute": {"gpuTypeId": "NVIDIA H100 80GB HBM3", "gpuCountPerPod": 8, "podCount": max(2, len(members))},
            "pods": {"total": len(members), "byStatus": {"RUNNING": len(members)}},
            "createdAt": datetime.now(UTC).isoformat(),
        }

    def _row(self, pod: Pod) -> dict[str, Any]:
        """Describe a pod (§5)."""
        body, machine, now = pod.body, self.machines.all.get(pod.id), time.monotonic()
        state = pod.state
        if state == "PROVISIONING" and machine is not None and now - machine.born > PROVISIONING:
            state = "STARTING"
        direct = None
        # The address comes a moment after the state.
        if state == "RUNNING" and machine and "22/tcp" in body.get("ports", ()) and now - pod.running_since > 0.1:
            port = self.machines.port
            command = f"ssh root@{machine.address} -p {port}"
            direct = {"host": machine.address, "port": port, "username": "root", "command": command}
        row = {
            "id": pod.id,
            "name": body["name"],
            "status": state,
            "actions": _ACTIONS.get(state, ["terminate"]),
            "image": body["image"],
            "args": body.get("args", ""),
            "disk": body.get("disk", 20),
            "ports": body.get("ports", []),
            "env": body.get("env", {}),
            "registry": body.get("registry"),
            "mounts": body.get("mounts", {}),
            "cloud": body.get("cloud", "SECURE"),
            "dataCenterId": None if state == "PROVISIONING" else pod.place,
            "cudaVersion": "12.8" if state == "RUNNING" and "gpu" in body else None,
            "ssh": {"proxy": None, "direct": direct},
            "template": None,
            "cost": 0.0 if state in ("EXITED", "TERMINATED") else pod.cost,
            "locked": False,
            "runtime": {"uptime": 1} if state == "RUNNING" else None,
            "createdAt": pod.created.isoformat(),
            "startedAt": pod.created.isoformat() if state == "RUNNING" else None,
            "globalNetworking": {"enabled": False},
        }
        if body.get("globalNetworking") and machine is not None:
            dns = f"{pod.id}.runpod.internal"
            row["globalNetworking"] = {"enabled": True, "ip": machine.address, "internalDns": dns}
        if pod.cluster:
            row["cluster"] = {"id": pod.cluster, "rank": 0}
        if "gpu" in body:
            row["gpu"] = {"id": body["gpu"]["id"], "count": body["gpu"].get("count", 1)}
        if "cpu" in body:
            memory = (self.catalogue.cpu(body["cpu"]["id"]) or (0, 2.0, 0.0))[1]
            row["cpu"] = {**body["cpu"], "memory": int(memory * body["cpu"]["vcpuCount"])}
        return row


def _schema_faults(body: Any) -> list[str]:
    """Say what is wrong with a body: unknown fields anywhere are refused (§4)."""
    if not isinstance(body, dict):
        return ["$: not an object"]
    faults = [f"$: additional properties '{name}' not allowed" for name in body if name not in _FIELDS]
    faults += [
        f"$.{name}: wrong type" for name, kind in _FIELDS.items() if name in body and not isinstance(body[name], kind)
    ]  # type: ignore[arg-type]
    faults += [f"$.{name}: required" for name in ("name", "image") if not body.get(name)]
    gpu, env = body.get("gpu", {}), body.get("env", {})
    known = {"id", "count", "allowedCudaVersions", "minCudaVersion"}
    faults += [f"$.gpu: additional properties '{name}' not allowed" for name in gpu if name not in known]
    faults += [f"$.env.{name}: not a string" for name, text in env.items() if not isinstance(text, str)]
    mounts = body.get("mounts", {})
    faults += [f"$.mounts: additional properties '{name}' not allowed" for name in mounts if name not in _MOUNTS]
    # `path` has no default (§4).
    network = [("$.mounts.network", {"volumeId", "path"}, each) for each in mounts.get("network", ())]
    faults += [f"{where}: not exactly {sorted(fields)}" for where, fields, each in network if set(each) != fields]
    faults += [f"$.ports: {port}" for port in body.get("ports", ()) if not re.fullmatch(r"\d+/(tcp|http)", str(port))]
    if "missing-image" in str(body.get("image")):
        faults.append("$.image: image not found")  # §6: an image that does not exist
    return faults


if __name__ == "__main__":
    serve(RunPod, *sys.argv[1:])
