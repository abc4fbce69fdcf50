"""Where checkpoints are kept for which a task names no place."""

from __future__ import annotations

from skyward.model.spec.volumes import Disk, Volume
from skyward.plan.pool.default_checkpoints import checkpoint_folder


def test_the_first_disk_with_a_folder_is_taken() -> None:
    """One without waits for its cloud to say where it is."""
    assert "/b/skyward-checkpoints" == checkpoint_folder([Disk("a"), Disk("b", mount="/b"), Disk("c", mount="/c")])


def test_a_bucket_is_not_taken() -> None:
    """What was written there may be lost with its node; a folder that stands for one is durable, if written to."""
    assert checkpoint_folder([Volume("bucket", "/data", read_only=False)]) is None
    assert checkpoint_folder([Volume("bucket", "/data", storage="/srv")]) is None
    written = Volume("bucket", "/data", read_only=False, storage="/srv")
    assert "/data/skyward-checkpoints" == checkpoint_folder([written])
    assert checkpoint_folder([]) is None
