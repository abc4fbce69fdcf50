"""All five test clouds at once, calm before each test and empty after it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from tests.clouds.aws import cloud as aws
from tests.clouds.cloud import IGNORED, Cloud, Start, left_empty
from tests.clouds.digitalocean import cloud as digitalocean
from tests.clouds.runpod import cloud as runpod
from tests.clouds.vastai import cloud as vastai
from tests.clouds.verda import cloud as verda

collect_ignore_glob = IGNORED


@frozen
class Clouds:
    """What speaks to each of them."""

    aws: aws.Cloud
    digitalocean: digitalocean.Cloud
    runpod: runpod.Cloud
    vastai: vastai.Cloud
    verda: verda.Cloud

    def all(self) -> list[Cloud]:
        """List them."""
        return [self.aws, self.digitalocean, self.runpod, self.vastai, self.verda]

    def alive(self) -> list[str]:
        """Return the names of all machines that are billed anywhere."""
        return [f"{type(cloud).__module__}: {row['id']}" for cloud in self.all() for row in cloud.alive()]


@pytest.fixture
def clouds(started: Callable[[Start], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Clouds]:
    """Give them, with their variables in the environment and nothing remembered of their offers."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    running = Clouds(*(started(each.cloud) for each in (aws, digitalocean, runpod, vastai, verda)))
    with contextlib.ExitStack() as stack:
        for cloud in running.all():
            cloud.hosts(there=True)
            stack.enter_context(left_empty(cloud, monkeypatch))
        yield running
