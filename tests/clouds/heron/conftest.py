"""One Heron for the tests of a process, calm before each of them and empty after it."""

from __future__ import annotations

from tests.clouds.cloud import IGNORED, fixture
from tests.clouds.heron.cloud import cloud

collect_ignore_glob = IGNORED

heron = fixture(cloud)
