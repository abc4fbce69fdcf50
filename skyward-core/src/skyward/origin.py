"""
Where this Skyward came from, and the command that installs more of it from there.

The name `skyward` belongs to another program on the public index, so a command that names it there would install that.
"""

from __future__ import annotations

import json
import shlex
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

__all__ = ["command", "install"]

CORE = "skyward-core"

_DISTRIBUTIONS = {"joblib": "skyward-sklearn"}
"""Distributions whose name is not that of the extra."""


def install(extra: str) -> str:
    """
    Return the command that installs a part of Skyward which is missing.

    Args:
        extra: Its name, such as `"aws"`.

    >>> install("aws").startswith("pip install ")
    True
    """
    return command(_DISTRIBUTIONS.get(extra, f"skyward-{extra}"), _origin())


def command(name: str, origin: dict[str, Any] | None) -> str:
    """
    Return the command that installs a distribution from where core came.

    Args:
        name: Of the distribution.
        origin: What the installer has written down of core, as `direct_url.json` of PEP 610 has it; None where it came
            from an index.

    >>> command("skyward-aws", None)
    'pip install skyward-aws'
    >>> command("skyward-aws", {"url": "file:///src/skyward-core", "dir_info": {"editable": True}})
    'pip install --editable /src/skyward-aws'
    >>> command("skyward-aws", {"url": "file:///dist/skyward_core-1.0-py3-none-any.whl", "archive_info": {}})
    'pip install --find-links /dist skyward-aws'
    """
    if origin is None:
        return f"pip install {name}"
    url = str(origin["url"])
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        source = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
        if folder := origin.get("subdirectory"):
            source += f"#subdirectory={str(folder).removesuffix(CORE)}{name}"
        return f"pip install {shlex.quote(f'{name} @ {source}')}"
    if not url.startswith("file:"):
        # One archive of a server; where its others are is not known.
        return f"pip install {name}"
    path = Path(unquote(urlsplit(url).path))
    if "dir_info" not in origin:
        return f"pip install --find-links {shlex.quote(str(path.parent))} {name}"
    editable = "--editable " if origin["dir_info"].get("editable") else ""
    return f"pip install {editable}{shlex.quote(str(path.parent / name))}"


@cache
def _origin() -> dict[str, Any] | None:
    """Read what the installer has written down of core."""
    try:
        text = distribution(CORE).read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    found = json.loads(text) if text else None
    return found if isinstance(found, dict) and "url" in found else None
