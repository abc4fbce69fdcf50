"""One AWS test cloud for the tests of a process, calm before each of them and empty after it."""

from __future__ import annotations

from tests.clouds.aws.cloud import cloud
from tests.clouds.cloud import IGNORED, fixture

collect_ignore_glob = IGNORED

aws = fixture(cloud)
