"""Files of known hosts, one for each machine."""

from __future__ import annotations

import gc
from pathlib import Path

from skyward.providers.host_pins import HostPins


def test_each_machine_has_a_file_of_its_own_which_goes_with_the_pins() -> None:
    """The folder is this user's alone."""
    pins = HostPins("shed")
    first, second = Path(pins.file("i-1")), Path(pins.file("i-2"))
    assert first.parent == second.parent
    assert first != second
    assert 0o700 == first.parent.stat().st_mode & 0o777
    first.write_text("key")
    del pins
    gc.collect()
    assert not first.parent.exists()
