"""One RunPod test cloud for the tests of a process, calm before each of them and empty after it."""

from __future__ import annotations

from tests.clouds.cloud import IGNORED, fixture
from tests.clouds.runpod.cloud import cloud

collect_ignore_glob = IGNORED

runpod = fixture(cloud)
