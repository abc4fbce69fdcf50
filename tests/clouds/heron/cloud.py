"""A test's view of Heron, and the provider that docs/write-a-provider.md writes for it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.clouds import cloud as clouds
from tests.clouds.cloud import ROOT, running
from tests.clouds.heron.server import KEY

__all__ = ["KEY", "Cloud", "cloud", "page"]


def page() -> str:
    """Return the code of the provider on the page."""
    text = Path(ROOT, "docs", "write-a-provider.md").read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return next(code for code in found if "class Heron" in code)


class Cloud(clouds.Cloud):
    """Speak to a running test cloud."""

    def environment(self) -> dict[str, str]:
        """Return what a client needs in its environment to speak to this cloud and to no other."""
        return {"HERON_URL": self.url, "HERON_API_KEY": KEY}

    def provider(self, **changes: Any) -> Any:
        """Make the provider of this cloud."""
        from tests.clouds.heron.provider import Heron

        return Heron(**changes)

    def set(self, **facts: Any) -> None:
        """Have `stock`, `dearer`, `page` or `limit` be others."""
        self.ask("set", facts)


@contextlib.contextmanager
def cloud() -> Iterator[Cloud]:
    """Run a test cloud in a process of its own."""
    with running(Cloud, "tests.clouds.heron.server", 160) as found:
        yield found
