"""A base image for real containers, made once on a machine and kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

IMAGE = "localhost/skyward-base:1"
PACKAGES = "openssh-server,python3,python3-venv,ca-certificates,iproute2,procps"


def base_image() -> str:
    """Give the name of an image with an SSH server and Debian's Python."""
    if subprocess.run(["podman", "image", "exists", IMAGE], check=False).returncode:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "root")
            run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root))
            bundle = Path(os.environ.get("SSL_CERT_FILE") or "/etc/ssl/certs/ca-certificates.crt")
            if bundle.exists():
                shutil.copy(bundle, root / "etc/ssl/certs/ca-certificates.crt")
            tar, load = f"tar -C {root} -c .", f"podman import - {IMAGE}"
            run("sh", "-ec", f"{tar} | {load}")
    return IMAGE


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command and give what it printed."""
    return subprocess.run(words, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def index() -> dict[str, str]:
    """Point a container at the package index that this machine uses, and at the certificates it trusts."""
    named = {
        name: os.environ[name] for name in ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX") if name in os.environ
    }
    return {**named, "UV_SYSTEM_CERTS": "1", "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"}
