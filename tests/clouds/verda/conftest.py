"""One Verda test cloud for the tests of a process, calm before each of them and empty after it."""

from __future__ import annotations

from tests.clouds.cloud import IGNORED, fixture
from tests.clouds.verda.cloud import cloud

collect_ignore_glob = IGNORED

verda = fixture(cloud)
