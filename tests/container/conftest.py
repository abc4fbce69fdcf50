"""The base image for the tests of this folder, and an eye on what they leave."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.container.base import base_image, run


@pytest.fixture(scope="session")
def image() -> str:
    """Give the name of an image with an SSH server and Debian's Python."""
    return base_image()


@pytest.fixture(autouse=True)
def _nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a container or a network of ours behind."""
    yield
    if request.node.get_closest_marker("containers") is None:
        return
    for words, form in ((["ps", "--all"], "{{.Names}}"), (["network", "ls"], "{{.Name}}")):
        left = run("podman", *words, "--filter", "label=skyward.pool", "--format", form).stdout.split()
        assert left == []


# The image has Debian's Python, and functions do not cross minor versions.
if sys.version_info[:2] != (3, 11):
    collect_ignore_glob = ["test_conformance.py", "test_containers.py", "test_frameworks.py"]
