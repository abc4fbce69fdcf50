"""What a rented container starts with, as the first process of real containers."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator

import asyncssh
import pytest

import skyward as sky
from skyward.model.instances.key_pair import KeyPair
from skyward.model.instances.machine import SSHAddress
from skyward.plan.bootstrap.container_start import ContainerStart, container_start
from skyward.plan.bootstrap.first_boot import host_key
from tests.container.work import variable

pytestmark = [pytest.mark.containers, pytest.mark.timeout(120)]

KEY = KeyPair()
HOST_KEY = host_key(KEY, "token/0")

# An image without a server, and a package manager that has one.
_WITHOUT = r"""
mv /usr/sbin/sshd /kept
cat >/usr/bin/apt-get <<END
#!/bin/sh
echo "\$*" >>/asked
case \$* in *openssh-server*) cp /kept /usr/sbin/sshd ;; esac
END
"""


def podman(*words: str) -> str:
    """Run a command, and return what it prints."""
    return subprocess.run(["podman", *words], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def name(image: str) -> Iterator[str]:
    """Give the name of a container, which is removed in the end."""
    name = "start-test"
    podman("rm", "--force", "--ignore", "--time", "0", name)
    yield name
    podman("rm", "--force", "--ignore", "--time", "0", name)


def run(name: str, image: str, start: ContainerStart, before: str = "") -> int:
    """Start a container, and return the port of its SSH server."""
    words = ["run", "--detach", "--name", name, "--publish", "127.0.0.1::22", "--env", "IMAGE_WORDS=a b"]
    for each, text in start.env.items():
        words += ["--env", f"{each}={text}"]
    podman(*words, image, "sh", "-c", before + start.script)
    return int(podman("port", name, "22/tcp").rpartition(":")[2])


async def logged_in(port: int, command: str) -> str:
    """Return what a command prints there."""
    known = asyncssh.import_known_hosts(f"[127.0.0.1]:{port} {HOST_KEY.public}\n")
    login = asyncssh.import_private_key(KEY.private)
    async with asyncio.timeout(40):
        while True:
            try:
                async with asyncssh.connect(
                    "127.0.0.1", port, username="root", client_keys=[login], known_hosts=known, config=None
                ) as connection:
                    return str((await connection.run(command)).stdout)
            except OSError:
                await asyncio.sleep(0.1)


def test_a_container_of_an_image_without_a_server_gets_one(image: str, name: str) -> None:
    """It is asked of the package manager, once, and what else a bootstrap needs with it."""
    port = run(name, image, container_start(KEY.public, HOST_KEY, end="kill 1", ttl=600), _WITHOUT)
    assert "a b\n" == asyncio.run(logged_in(port, "echo $IMAGE_WORDS"))
    asked = podman("exec", name, "cat", "/asked").splitlines()
    assert "update" == asked[0]
    assert "install -y --no-install-recommends openssh-server curl ca-certificates" == asked[1]


def test_a_container_ends_with_its_server(image: str, name: str) -> None:
    """What ends the first process ends all of it."""
    port = run(name, image, container_start(KEY.public, HOST_KEY, end="kill 1", ttl=600))
    assert "1\n" == asyncio.run(logged_in(port, "pgrep -o sshd"))
    # What asks for the end may not live to see it.
    subprocess.run(["podman", "exec", name, "sh", "-c", 'exec sh "${HOME:-/root}/.skyward/end"'], check=False)
    podman("wait", name)
    assert "exited" == podman("inspect", "--format", "{{.State.Status}}", name)


def test_a_pool_works_in_a_container_that_has_neither_systemd_nor_sudo(image: str, name: str) -> None:
    """Its first process is our server, and functions have the variables of the image."""
    port = run(name, image, container_start(KEY.public, HOST_KEY, end="kill 1", ttl=600))
    asyncio.run(logged_in(port, "true"))
    address = SSHAddress(
        host="127.0.0.1", port=port, user="root", private_key=KEY.private, host_key=HOST_KEY.public, trust="known"
    )
    with sky.Compute(provider=sky.SSH([address]), console=False, logging=False) as pool:
        assert "a b" == variable("IMAGE_WORDS") >> pool
