"""
Where this Skyward came from, and the command that installs more of it from there.

The name `skyward` belongs to another program on the public index, so a command that names it there would install that.
What an index is asked for has the version of core, which the distributions that are released together share.
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
    version, origin = _installed()
    return command(_DISTRIBUTIONS.get(extra, f"skyward-{extra}"), version, origin)


def command(name: str, version: str | None, origin: dict[str, Any] | None) -> str:
    """
    Return the command that installs a distribution from where core came.

    Args:
        name: Of the distribution.
        version: That of core; None where it was not installed.
        origin: What the installer has written down of core, as `direct_url.json` of PEP 610 has it; None where it came
            from an index.

    >>> command("skyward-aws", "1.0", None)
    'pip install skyward-aws==1.0'
    >>> command("skyward-aws", "1.0", {"url": "file:///src/skyward-core", "dir_info": {"editable": True}})
    'pip install --editable /src/skyward-aws'
    >>> command("skyward-aws", "1.0", {"url": "file:///dist/skyward_core-1.0-py3-none-any.whl", "archive_info": {}})
    'pip install --find-links /dist skyward-aws==1.0'
    """
    exactly = name if version is None else f"{name}=={version}"
    if origin is None:
        return f"pip install {exactly}"
    url = str(origin["url"])
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        source = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
        if folder := origin.get("subdirectory"):
            source += f"#subdirectory={str(folder).removesuffix(CORE)}{name}"
        return f"pip install {shlex.quote(f'{name} @ {source}')}"
    if not url.startswith("file:"):
        # One archive of a server; where its others are is not known.
        return f"pip install {exactly}"
    path = Path(unquote(urlsplit(url).path))
    if "dir_info" not in origin:
        return f"pip install --find-links {shlex.quote(str(path.parent))} {exactly}"
    editable = "--editable " if origin["dir_info"].get("editable") else ""
    return f"pip install {editable}{shlex.quote(str(path.parent / name))}"


@cache
def _installed() -> tuple[str | None, dict[str, Any] | None]:
    """Read the version of core, and what the installer has written down of its origin."""
    try:
        core = distribution(CORE)
    except PackageNotFoundError:
        return None, None
    text = core.read_text("direct_url.json")
    found = json.loads(text) if text else None
    return core.version, found if isinstance(found, dict) and "url" in found else None
