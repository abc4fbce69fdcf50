"""Real containers: nodes that can be paused, killed, cut off and stopped like rented machines."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import skyward as sky
from skyward.hookspecs import Topology
from tests.container.base import index
from tests.container.work import double, hold, process, reaches, say_slowly, slow, version_of_six, whoami

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]


def _podman(*words: str) -> str:
    return subprocess.run(["podman", *words], check=True, capture_output=True, text=True).stdout


def _open(base: str, **options: Any) -> sky.Compute:
    provider = sky.Container(image=base, binary="podman")
    return sky.Compute(**{"provider": provider, "console": "silent", "logging": False, "ttl": 60, **options})


def _until(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_pool_of_containers_does_what_it_does_at_home(image: str) -> None:
    """Each node is a container of its own, and they reach each other."""
    with _open(image, nodes=2) as pool:
        names = whoami() @ pool
        assert len(set(names)) == 2
        assert double(21) >> pool == 42
        assert pool.map(double, range(100)) == list(range(0, 200, 2))
        infos = sky.function(sky.instance_info)() @ pool
        assert infos[0].provider == "container"
        assert infos[0].head_addr == infos[0].private_ip != "127.0.0.1"
        assert reaches(infos[1].private_ip) >> pool


def test_containers_wait_for_the_next_pool(image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the same container, with another node in it; the last pool ends it."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path))
    with _open(image, linger=60) as pool:
        name = whoami() >> pool
    with _open(image, linger=60) as pool:
        assert whoami() >> pool == name
    with _open(image) as pool:
        assert whoami() >> pool == name
    assert _podman("ps", "--all", "--filter", "label=skyward.pool", "--format", "{{.Names}}") == ""


def test_packages_are_installed(image: str) -> None:
    """By uv, into an environment of the image's own."""
    with _open(image, image=sky.Image(pip=["six==1.17.0"], env=index()), bootstrap_timeout=200) as pool:
        assert version_of_six() >> pool == "1.17.0"


def test_limits_that_are_not_supported_are_a_warning(image: str) -> None:
    """The pool opens in any case."""
    provider = sky.Container(image=image, binary="podman", cpus=1, memory="1GB")
    with sky.Compute(provider=provider, console="silent", logging=False) as pool:
        assert double(1) >> pool == 2


def test_worker_that_memory_runs_out_for_is_one_error_and_is_replaced(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel really kills it: the error says so with figures, the other worker goes on, and so does the pool."""
    monkeypatch.chdir(tmp_path)
    provider = sky.Container(image=image, binary="podman", memory=0.4)
    with sky.Compute(provider=provider, per_node=2, console="silent", logging=False, ttl=60) as pool:
        before = process() @ pool
        hungry = hold(1_000_000_000) > pool
        calm = slow(40, 0.1) > pool
        with pytest.raises(sky.WorkerDiedError, match="probably for lack of memory") as caught:
            hungry.result(60)
        assert calm.result(60) == 40
        after = process() @ pool
    assert caught.value.signal == "SIGKILL"
    assert "limit of the whole node is 0.40 GB" in str(caught.value)
    assert "concurrency=" in str(caught.value)
    assert "about to hold 1000000000" in "".join(caught.value.output)
    (told,) = re.findall(r"held up to (0\.\d\d) GB", str(caught.value))
    assert 0.1 < float(told) <= 0.4
    assert len(set(before) & set(after)) == 1, "one worker is replaced, and the other one is not"
    assert list(tmp_path.iterdir()) == [], "podman leaves something where the program was started"


def test_killed_container_is_replaced(image: str) -> None:
    """Its calls are tried again on the next one."""
    with _open(image) as pool:
        name = whoami() >> pool
        _podman("kill", name)
        assert whoami() >> pool != name


def test_frozen_container_goes_on(image: str) -> None:
    """Nothing is lost by a pause that is shorter than the lease."""
    with _open(image) as pool:
        name = whoami() >> pool
        future = slow(10, 0.1) > pool
        _podman("pause", name)
        time.sleep(1)  # the pause itself, nothing is waited for
        _podman("unpause", name)
        assert future.result(30) == 10
        assert whoami() >> pool == name


def test_image_without_ssh_server_says_so(image: str) -> None:
    """With the container's own words."""
    name = "localhost/skyward-bare:1"
    container = "skyward-bare-maker"
    _podman("run", "--name", container, image, "rm", "/usr/sbin/sshd")
    _podman("commit", container, name)
    _podman("rm", container)
    try:
        compute = _open(name, max_provision_attempts=1)
        with pytest.raises(sky.ProvisionError, match="no OpenSSH server"), compute:
            pass
    finally:
        _podman("rmi", name)


def test_image_that_is_not_there_says_so() -> None:
    """And where to read how to make one."""
    with pytest.raises(sky.ConfigError, match="cannot get it"), _open("localhost/no-such-image:1"):
        pass


def test_container_ends_itself_when_its_client_is_killed(image: str, tmp_path: Path) -> None:
    """Within the lease; the network is found by its label."""
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent(f"""
        import time
        import skyward as sky
        with sky.Compute(provider=sky.Container(image={image!r}, binary="podman"), console="silent", ttl=5) as pool:
            print(sky.function(lambda: __import__("socket").gethostname())() >> pool, flush=True)
            time.sleep(1000)
        """)
    )
    client = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    name = client.stdout.readline().strip()
    client.kill()
    client.wait()
    client.stdout.close()
    try:
        _until(lambda: _podman("inspect", "--format", "{{.State.Running}}", name).strip() == "false")
    finally:
        _podman("rm", "--force", name)
        for network in _podman("network", "ls", "--filter", "label=skyward.pool", "--format", "{{.Name}}").split():
            _podman("network", "rm", network)


@contextlib.contextmanager
def _cut_off(name: str) -> Iterator[None]:
    """Have every packet from and to a container vanish; the rules are in its own network and end with it."""
    inside = ["nsenter", "--net", "--target", _podman("inspect", "--format", "{{.State.Pid}}", name).strip()]
    rules = [["INPUT", "-j", "DROP"], ["OUTPUT", "-j", "DROP"]]
    for rule in rules:
        subprocess.run([*inside, "iptables", "--insert", *rule], check=True)
    try:
        yield
    finally:
        for rule in rules:
            # Where it has ended meanwhile there is nothing to take back.
            subprocess.run([*inside, "iptables", "--delete", *rule], check=False, capture_output=True)


def test_nodes_that_a_firewall_keeps_apart_are_no_place_for_one_job(image: str) -> None:
    """The error comes before any task, and says who does not reach whom; calls of their own can still be made there."""

    def wall(event: sky.BootstrapStarting) -> None:
        assert event.instance is not None
        inside = ["nsenter", "--net", "--target", _podman("inspect", "--format", "{{.State.Pid}}", event.instance.id)]
        rules = ["--protocol tcp --dport 22 --jump ACCEPT", "--protocol tcp --syn --jump DROP"]
        for rule in rules:
            command = [*(word.strip() for word in inside), "iptables", "--append", "INPUT", *rule.split()]
            subprocess.run(command, check=True)

    job = sky.Plugin.create("job").with_topology(lambda cluster: Topology(collective=True))
    pool = _open(image, nodes=2, plugins=[job], max_provision_attempts=1).on(sky.BootstrapStarting, wall)
    with pytest.raises(sky.ProvisionError) as caught, pool:
        pass
    said = str(caught.value)
    assert re.search(r"node . \(container \S+\) cannot reach node . \(container \S+\) at [\d.]+:\d+: no answer", said)
    assert "open the firewall between the nodes" in said
    with _open(image, nodes=2).on(sky.BootstrapStarting, wall) as apart:
        assert len(set(whoami() @ apart)) == 2


def test_work_goes_on_after_a_network_cut(image: str) -> None:
    """Packets vanish for some seconds, in both directions; every result arrives once, and every line."""
    lines: list[str] = []
    pool = _open(image, concurrency=10)
    pool.on(sky.Log, lambda event: lines.append(event.line))
    with pool:
        name = whoami() >> pool
        futures = [say_slowly(number, 0.2) > pool for number in range(200)]
        with _cut_off(name):
            time.sleep(5)  # the cut itself, nothing is waited for
            assert not all(future.done() for future in futures)
        assert [future.result(60) for future in futures] == list(range(200))
        assert whoami() >> pool == name
    assert sorted(lines) == sorted(f"line {number}" for number in range(200))


def test_container_that_is_cut_off_for_longer_than_its_lease_ends_and_is_replaced(image: str) -> None:
    """Its call is run again on the next one, and nothing goes on in the first."""
    with _open(image, ttl=8) as pool:
        name = whoami() >> pool
        future = slow(4, 0.5) > pool
        with _cut_off(name):
            began = time.monotonic()
            _until(lambda: name not in _podman("ps", "--format", "{{.Names}}"), 60)
            assert time.monotonic() - began > 4
            assert future.result(120) == 4
        assert whoami() >> pool != name


def test_second_client_with_one_pool_id_is_told_and_does_no_harm(image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one's containers and network stay."""
    ids = SimpleNamespace(token_hex=lambda count: "0badcafe")
    monkeypatch.setattr(importlib.import_module("skyward.pool"), "secrets", ids)
    with _open(image) as pool:
        name = whoami() >> pool
        with pytest.raises(sky.ProvisionError, match="skyward-0badcafe"), _open(image):
            pass
        assert whoami() >> pool == name


_HOLD = """
import fcntl, time
held = [open(path, "w") for path in ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/lib/apt/lists/lock")]
for file in held:
    fcntl.lockf(file, fcntl.LOCK_EX)
time.sleep(25)
"""


@pytest.fixture
def busy(image: str) -> Iterator[str]:
    """Give an image whose machines hold the locks of apt and dpkg for a while after they have booted."""
    name, container = "localhost/skyward-busy:1", "skyward-busy-maker"
    wrapper = f"#!/bin/sh\npython3 -c '{_HOLD}' &\nexec /usr/sbin/sshd.real \"$@\"\n"
    script = 'mv /usr/sbin/sshd /usr/sbin/sshd.real && printf %s "$0" >/usr/sbin/sshd && chmod 755 /usr/sbin/sshd'
    script += " && rm -rf /var/lib/apt/lists/*"
    _podman("run", "--name", container, image, "sh", "-c", script, wrapper)
    try:
        _podman("commit", container, name)
        yield name
    finally:
        _podman("rm", "--force", container)
        _podman("rmi", "--ignore", name)


def test_locks_of_apt_are_waited_for(busy: str) -> None:
    """A machine that has just booted holds them while it fetches lists and updates itself."""
    lines: list[str] = []
    pool = _open(busy, image=sky.Image(apt=["tree"]), bootstrap_timeout=200, max_provision_attempts=1)
    pool.on(sky.BootstrapConsole, lambda event: lines.append(event.line))
    with pool:
        assert sky.function(lambda: os.path.exists("/usr/bin/tree"))() >> pool
    assert any("lists/lock" in line for line in lines), lines
