"""One test cloud of DigitalOcean for the tests of a process, calm before each of them and empty after it."""

from __future__ import annotations

from tests.clouds.cloud import IGNORED, fixture
from tests.clouds.digitalocean.cloud import cloud

collect_ignore_glob = IGNORED

ocean = fixture(cloud)
