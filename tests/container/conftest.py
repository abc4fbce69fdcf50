"""A base image for real containers, made once on a machine and kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

IMAGE = "localhost/skyward-base:1"
PACKAGES = "openssh-server,python3,python3-venv,ca-certificates,iproute2,procps"


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def image() -> str:
    """Give the name of an image with an SSH server and Debian's Python."""
    if subprocess.run(["podman", "image", "exists", IMAGE], check=False).returncode:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "root")
            _run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root))
            bundle = Path(os.environ.get("SSL_CERT_FILE") or "/etc/ssl/certs/ca-certificates.crt")
            if bundle.exists():
                shutil.copy(bundle, root / "etc/ssl/certs/ca-certificates.crt")
            tar, load = f"tar -C {root} -c .", f"podman import - {IMAGE}"
            _run("sh", "-ec", f"{tar} | {load}")
    return IMAGE


@pytest.fixture(autouse=True)
def _nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a container or a network of ours behind."""
    yield
    if request.node.get_closest_marker("containers") is None:
        return
    for words, form in ((["ps", "--all"], "{{.Names}}"), (["network", "ls"], "{{.Name}}")):
        left = _run("podman", *words, "--filter", "label=skyward.pool", "--format", form).stdout.split()
        assert left == []


# The image has Debian's Python, and functions do not cross minor versions.
if sys.version_info[:2] != (3, 11):
    collect_ignore_glob = ["test_containers.py"]
