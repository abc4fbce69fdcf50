"""
The test cloud's own process: moto's AWS behind a gate that adds what it lacks, and real hosts for its instances.

    python -m tests.clouds.aws.server FOLDER NETWORK

It prints its address, and ends when its standard input is closed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

os.environ.setdefault("MOTO_AMIS_PATH", str(Path(__file__).with_name("images.json")))
os.environ["MOTO_ENABLE_AMI_VALIDATION"] = "true"
os.environ["MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION"] = "true"

from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from tests.clouds.aws import prices
from tests.clouds.aws.faults import EC2, JSON, Fault, Faults, Request, read, refusal
from tests.clouds.aws.fleets import Templates
from tests.clouds.aws.machines import Machines
from tests.clouds.aws.session_manager import Sessions

Respond = Callable[..., Any]
KEY = "AKIATESTCLOUD0000001"
LAUNCH_EFFECTS = {"slow", "never", "refuse", "key", "dies"}


class Gate:
    """
    Stand in front of moto.

    Args:
        machines: The hosts behind the instances.
    """

    def __init__(self, machines: Machines) -> None:
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.machines = machines
        self.sessions = Sessions(machines)
        self.templates = Templates()
        self.faults = Faults()
        self.calls: list[dict[str, Any]] = []
        self.met = 0
        self.allowed: set[str] | None = None
        self.lock = machines.answering
        self.quotas: dict[str, float] = {}
        self.tokens: dict[tuple[str, str], tuple[str, bytes]] = {}

    def __call__(self, environ: dict[str, Any], respond: Respond) -> Iterable[bytes]:
        """Answer a request."""
        path = environ["PATH_INFO"]
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        if path.startswith("/test-cloud/"):
            answer = self.control(path.removeprefix("/test-cloud/"), environ, body)
            return _send(respond, 200, "application/json", json.dumps(answer).encode())
        if path.startswith("/imds/"):
            return self.metadata(path.removeprefix("/imds/"), environ, respond)
        environ["wsgi.input"] = io.BytesIO(body)
        request = read(environ, body)
        if request is None:
            return self.moto(environ, respond)
        made = {
            "name": f"dry:{request.name}" if request.dry else request.name,
            "needs": sorted(request.needs),
            "region": request.region,
        }
        self.calls.append({**made, "params": request.params, "at": time.monotonic()})
        for code, status, message in self._not_allowed(request):
            return _send(respond, status, *refusal(request, code, message))
        facts = self._facts(request)
        met = self.faults.take(request.action, facts)
        self.met += len(met)
        for fault in met:
            if fault.effect == "late":
                time.sleep(fault.seconds)
            if fault.effect == "error":
                content, text = refusal(request, fault.code, fault.message)
                return _send(respond, fault.status, content, text, fault.headers)
        self.machines.launch.conditions = _conditions(met)
        answer = self._answer(request, facts, environ, respond)
        if any(fault.effect == "cut" for fault in met):
            list(answer)
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionError
        return answer

    def control(self, what: str, environ: dict[str, Any], body: bytes) -> Any:
        """Do what a test asks of the cloud itself."""
        query = {name: values[0] for name, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
        given = json.loads(body) if body else None
        if what == "fault":
            self.faults.add(given)
        elif what == "calm":
            self.faults.clear()
            self.quotas.clear()
            prices.dearer.clear()
            self.allowed, self.machines.lag, self.machines.skew = None, 0.0, 0.0
            self.calls.clear()
            self.sessions.all.clear()
            self.templates.all.clear()
            self.met = 0
            for backend in _backends():
                for image in backend.describe_images(owners=["self"]):
                    backend.deregister_image(image.id)
                    self.machines.drop(image.id)
        elif what == "dearer":
            prices.dearer.update(given)
        elif what == "allow":
            self.allowed = set(given)
        elif what == "quota":
            self.quotas.update(given)
        elif what == "hosts":
            self.machines.hosts = given
        elif what == "lag":
            self.machines.lag = given
        elif what == "skew":
            self.machines.skew = given
        elif what == "calls":
            return self.calls
        elif what == "met":
            return self.met
        elif what == "sessions":
            return self.sessions.told()
        elif what == "templates":
            return [{"id": name, "tags": each.tags} for name, each in self.templates.all.items()]
        elif what == "instances":
            return self._instances()
        elif what == "groups":
            backend = ec2_backends[DEFAULT_ACCOUNT_ID][query["region"]]
            return [group.name for group in backend.describe_security_groups()]
        elif what == "images":
            return [image.id for backend in _backends() for image in backend.describe_images(owners=["self"])]
        elif what == "image":
            for backend in _backends():
                if given["id"] in backend.amis:
                    backend.amis[given["id"]].state = given["state"]
        elif what == "state":
            self.machines.rows[given["id"]].state(given["name"])
        elif what == "terminate":
            self.machines.rows[query["id"]].instance.terminate()
        elif what == "shutdown":
            self.machines.shutdown(query["id"])
        elif what == "interrupt":
            self.machines.interrupt(given["id"], given["seconds"])
        elif what == "volume":
            backend = ec2_backends[DEFAULT_ACCOUNT_ID][given["zone"][:-1]]
            return self.machines.storage.make(backend, **given)
        elif what == "volumes":
            return [row for backend in _backends() for row in self.machines.storage.rows(backend)]
        elif what == "roots":
            return [row for backend in _backends() for row in self.machines.storage.roots(backend)]
        elif what == "drop":
            for backend in _backends():
                self.machines.storage.drop(backend)
        elif what == "port":
            return self.machines.port
        else:
            raise ValueError(what)
        return None

    def metadata(self, path: str, environ: dict[str, Any], respond: Respond) -> Iterable[bytes]:
        """Be the instance metadata service of one instance: `/imds/ID/latest/...`."""
        name, _, rest = path.partition("/")
        machine = self.machines.rows.get(name)
        if rest == "latest/api/token" and environ["REQUEST_METHOD"] == "PUT":
            return _send(respond, 200, "text/plain", f"token-{name}".encode())
        if environ.get("HTTP_X_AWS_EC2_METADATA_TOKEN") != f"token-{name}":
            return _send(respond, 401, "text/plain", b"")
        if machine is not None and machine.notice and rest == "latest/meta-data/spot/instance-action":
            notice = {"action": "terminate", "time": machine.notice}
            return _send(respond, 200, "application/json", json.dumps(notice).encode())
        return _send(respond, 404, "text/plain", b"")

    def _instances(self) -> list[dict[str, Any]]:
        while True:
            # moto has no locks: what another request changes meanwhile is read again.
            with contextlib.suppress(RuntimeError, KeyError):
                return [self._row(machine) for machine in list(self.machines.rows.values())]

    def _row(self, machine: Any) -> dict[str, Any]:
        instance = machine.instance
        return {
            "id": instance.id,
            "region": machine.region,
            "zone": instance.placement.zone,
            "type": instance.instance_type,
            "image": instance.image_id,
            "state": instance.state,
            "alive": instance.state not in ("terminated", "shutting-down"),
            "spot": instance.lifecycle == "spot",
            "address": instance.nics[0].public_ip if instance.nics else None,
            "private": instance.nics[0].private_ip_address if instance.nics else None,
            "tags": {tag["key"]: tag["value"] for tag in instance.get_tags()},
            "base": str(machine.host.base) if machine.host else None,
            "shutdown": instance.instance_initiated_shutdown_behavior,
        }

    def _not_allowed(self, request: Request) -> Iterable[tuple[str, int, str]]:
        if request.key != KEY:
            if request.service == "ec2":
                yield "AuthFailure", 401, "AWS was not able to validate the provided access credentials"
            else:
                yield "InvalidClientTokenId", 403, "The security token included in the request is invalid."
        # Everybody may ask who he is.
        elif self.allowed is not None and (missing := request.needs - self.allowed) and request.service != "sts":
            who = f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:user/test"
            message = f"User: {who} is not authorized to perform: {min(missing)} because no policy allows it"
            if request.service == "ec2":
                yield "UnauthorizedOperation", 403, f"You are not authorized to perform this operation. {message}"
            else:
                yield "AccessDeniedException", 400, message

    def _facts(self, request: Request) -> dict[str, str]:
        if request.action != "RunInstances":
            return {"region": request.region, **({"dry": "true"} if request.dry else {})}
        subnet = request.params.get("NetworkInterface.1.SubnetId") or request.params.get("SubnetId")
        backend = ec2_backends[DEFAULT_ACCOUNT_ID][request.region]
        return {
            "region": request.region,
            "type": request.params["InstanceType"],
            "zone": backend.get_subnet(subnet).availability_zone if subnet else f"{request.region}a",
            "market": request.params.get("InstanceMarketOptions.MarketType", "on-demand"),
        }

    def _answer(
        self, request: Request, facts: dict[str, str], environ: dict[str, Any], respond: Respond
    ) -> Iterable[bytes]:
        if request.name == "pricing:GetProducts":
            return _send(respond, 200, JSON, json.dumps(prices.products(request.params)).encode())
        if request.name == "ssm:GetParameter" and request.params["Name"] in IMAGES:
            value = {"Name": request.params["Name"], "Type": "String", "Value": IMAGES[request.params["Name"]]}
            return _send(respond, 200, JSON, json.dumps({"Parameter": value}).encode())
        if request.name == "ssm:StartSession":
            answer = self.sessions.start(request.params)
            if isinstance(answer, tuple):
                return _send(respond, 400, *refusal(request, *answer))
            return _send(respond, 200, JSON, json.dumps(answer).encode())
        if request.name == "servicequotas:GetServiceQuota":
            code = request.params["QuotaCode"]
            found = {"Quota": {"QuotaCode": code, "Value": self.quotas.get(code, 5000.0)}}
            return _send(respond, 200, JSON, json.dumps(found).encode())
        if request.name == "ec2:DescribeRegions":
            # The account has not opted into more.
            return _send(respond, 200, EC2, _listing("DescribeRegions", "regionInfo", REGIONS))
        if request.name == "ec2:DescribeSpotPriceHistory":
            zones = request.filtered("availability-zone")
            rows = prices.spot_rows(request.region, request.listed("InstanceType"), zones)
            return _send(respond, 200, EC2, _listing("DescribeSpotPriceHistory", "spotPriceHistorySet", rows))
        if request.name == "ec2:AttachVolume":
            return self._attach(request, environ, respond)
        if request.name == "ec2:CreateImage":
            return self._keep(request, environ, respond)
        if request.name == "ec2:DeregisterImage":
            self.machines.drop(request.params["ImageId"])
        if request.name == "ec2:DeleteSecurityGroup" and self._in_use(request):
            return _send(respond, 400, *refusal(request, "DependencyViolation", "resource has a dependent object"))
        if request.name == "ec2:RunInstances":
            return self._launch(request, facts, environ, respond)
        if request.name in ("ec2:CreateFleet", *_OF_TEMPLATES):
            answer = self._together(request, environ)
            if isinstance(answer, tuple):
                return _send(respond, 400, *refusal(request, *answer))
            return _send(respond, 200, EC2, answer)
        return [self.faults.garble(part) for part in self.moto(environ, respond)]

    def _together(self, request: Request, environ: dict[str, Any]) -> bytes | tuple[str, str]:
        """Answer what concerns launch templates and fleets."""
        if request.action in _TEMPLATES:
            return _TEMPLATES[request.action](self.templates, request)
        token = (request.region, f"fleet-{request.params['ClientToken']}")
        if token in self.tokens:
            return self.tokens[token][1]

        def launch(one: Request) -> tuple[str, str] | str:
            facts, said = self._facts(one), environ.copy()
            met = self.faults.take("RunInstances", facts)
            self.met += len(met)
            for fault in met:
                if fault.effect == "error":
                    return fault.code, fault.message
            self.machines.launch.conditions = _conditions(met)
            body = urlencode(one.params).encode()
            said["wsgi.input"], said["CONTENT_LENGTH"] = io.BytesIO(body), str(len(body))
            text = b"".join(self._launch(one, facts, said, lambda *_: None)).decode()
            if found := re.search(r"<instanceId>(i-\w+)</instanceId>", text):
                return found[1]
            code, message = re.search(r"<Code>(.*?)</Code>", text), re.search(r"<Message>(.*?)</Message>", text)
            assert code is not None, text
            assert message is not None, text
            return code[1], message[1]

        def price(subnet: str) -> float:
            zone = ec2_backends[DEFAULT_ACCOUNT_ID][request.region].get_subnet(subnet).availability_zone
            kind = request.params["LaunchTemplateConfigs.1.Overrides.1.InstanceType"]
            [row, *_] = [*prices.spot_rows(request.region, [kind], [zone]), {"spotPrice": "inf"}]
            return float(row["spotPrice"])

        answer = self.templates.fleet(request, launch, price)
        if isinstance(answer, bytes):
            self.tokens[token] = ("", answer)
        return answer

    def _keep(self, request: Request, environ: dict[str, Any], respond: Respond) -> Iterable[bytes]:
        backend, name = ec2_backends[DEFAULT_ACCOUNT_ID][request.region], request.params["Name"]
        with self.lock:
            if any(image.name == name for image in backend.describe_images(owners=["self"])):
                message = f"AMI name {name} is already in use by AMI of your own"
                return _send(respond, 400, *refusal(request, "InvalidAMIName.Duplicate", message))
            _without_snapshot_tags(request, environ)
            before = set(backend.amis)
            answer = list(self.moto(environ, respond))
            for image in set(backend.amis) - before:
                self.machines.keep(request.params["InstanceId"], image)
                backend.amis[image].root_device_name = "/dev/sda1"
        return answer

    def _attach(self, request: Request, environ: dict[str, Any], respond: Respond) -> Iterable[bytes]:
        backend, volume = ec2_backends[DEFAULT_ACCOUNT_ID][request.region], request.params["VolumeId"]
        machine = self.machines.rows[request.params["InstanceId"]]
        with self.lock:
            if wrong := self.machines.storage.refusal(backend, volume, machine.instance):
                return _send(respond, 400, *refusal(request, *wrong))
            answer = list(self.moto(environ, respond))
            if machine.host is not None:
                self.machines.storage.plug(machine.host, volume)
        return answer

    def _in_use(self, request: Request) -> bool:
        group = request.params["GroupId"]
        return any(
            group in [one.id for one in machine.instance.security_groups]
            or any(group in [one.id for one in nic.group_set] for nic in machine.instance.nics.values())
            for machine in list(self.machines.rows.values())
            if machine.instance.state != "terminated"
        )

    def _launch(
        self, request: Request, facts: dict[str, str], environ: dict[str, Any], respond: Respond
    ) -> Iterable[bytes]:
        if not prices.sold_in(request.region, facts["type"], facts["zone"]):
            message = f"Your requested instance type ({facts['type']}) is not supported in your requested zone"
            return _send(respond, 400, *refusal(request, "Unsupported", message))
        backend = ec2_backends[DEFAULT_ACCOUNT_ID][request.region]
        known_groups = {group.id for group in backend.describe_security_groups()}
        for group in (text for name, text in request.params.items() if ".SecurityGroupId." in name):
            if group not in known_groups:
                message = f"The security group '{group}' does not exist"
                return _send(respond, 400, *refusal(request, "InvalidGroup.NotFound", message))
        token = (request.region, request.params.get("ClientToken", ""))
        digest = hashlib.sha256(json.dumps(request.params, sort_keys=True).encode()).hexdigest()
        with self.lock:
            if token in self.tokens:
                known, text = self.tokens[token]
                if known != digest:
                    message = "Arguments on this idempotent request are inconsistent with arguments used before"
                    return _send(respond, 400, *refusal(request, "IdempotentParameterMismatch", message))
                return _send(respond, 200, EC2, text)
            answer: list[Any] = []

            def remember(status: str, headers: list[tuple[str, str]], *rest: Any) -> None:
                answer[:] = [status, headers]

            text = b"".join(self.moto(environ, remember))
            if answer[0].startswith("200"):
                self.tokens[token] = (digest, text)
        respond(*answer)
        return [text]


_TEMPLATES: dict[str, Callable[[Templates, Request], bytes | tuple[str, str]]] = {
    "CreateLaunchTemplate": Templates.make,
    "DescribeLaunchTemplates": Templates.told,
    "DeleteLaunchTemplate": Templates.drop,
}
_OF_TEMPLATES = tuple(f"ec2:{action}" for action in _TEMPLATES)


def _backends() -> list[Any]:
    """Return what moto has of EC2, a part for each region."""
    return [ec2_backends[DEFAULT_ACCOUNT_ID][region["regionName"]] for region in REGIONS]


IMAGES = {
    name: image["ami_id"]
    for image in json.loads(Path(os.environ["MOTO_AMIS_PATH"]).read_text())
    for name in [image["description"]]
}
"""Machine images by the public parameter that names them."""


def _conditions(met: list[Fault]) -> dict[str, Any]:
    """Return what becomes of the machines of a launch."""
    found = [fault for fault in met if fault.effect in LAUNCH_EFFECTS]
    conditions: dict[str, Any] = {fault.effect: True for fault in found}
    return conditions | {"seconds": sum(fault.seconds for fault in found)}


def _without_snapshot_tags(request: Request, environ: dict[str, Any]) -> None:
    """Take the tags of snapshots out of a request, which moto cannot read."""
    kinds = {name: text for name, text in request.params.items() if name.endswith(".ResourceType")}
    front = tuple(name.removesuffix("ResourceType") for name, text in kinds.items() if text == "snapshot")
    kept = {name: text for name, text in request.params.items() if not (front and name.startswith(front))}
    body = urlencode(kept).encode()
    environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(body), str(len(body))


REGIONS = [{"regionName": name} for name in ("us-east-1", "us-west-2", "eu-central-1", "eu-west-1")]


def _listing(action: str, key: str, rows: list[dict[str, str]]) -> bytes:
    items = "".join(f"<item>{''.join(f'<{k}>{v}</{k}>' for k, v in row.items())}</item>" for row in rows)
    space = "http://ec2.amazonaws.com/doc/2016-11-15/"
    return (
        f'<?xml version="1.0"?><{action}Response xmlns="{space}"><requestId>r-1</requestId>'
        f"<{key}>{items}</{key}></{action}Response>"
    ).encode()


def _send(
    respond: Respond, status: int, content: str, text: bytes, headers: dict[str, str] | None = None
) -> Iterable[bytes]:
    own = [("Content-Type", content), ("Content-Length", str(len(text))), *(headers or {}).items()]
    respond(f"{status} {'OK' if status == 200 else 'Refused'}", own)
    return [text]


class Quiet(MotoRequestHandler):
    """Handle requests without a line for each."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet about what works."""
        if type == "error":
            print(message % args, file=sys.stderr, flush=True)


def main(folder: str, network: str) -> None:
    """Serve until no process holds our standard input any more."""
    gates: list[Gate] = []

    def door(environ: dict[str, Any], respond: Respond) -> Iterable[bytes]:
        return gates[0](environ, respond)

    server = make_server("127.0.0.1", 0, door, threaded=True, request_handler=Quiet)
    url = f"http://127.0.0.1:{server.server_port}"
    machines = Machines(Path(folder), network, url)
    machines.install()
    gates.append(Gate(machines))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(url, flush=True)
    sys.stdin.read()
    machines.close()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
