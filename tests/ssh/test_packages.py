"""What the user installs on a host does not get in the way of our side of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import skyward as sky
from tests.hosts import hosts, package_settings
from tests.ssh.conftest import Site

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(300)]


@pytest.fixture
def indexed() -> Iterator[Site]:
    """Run two hosts that find the package index which this machine uses."""
    with hosts(2, env=package_settings()) as (made, key):
        yield Site(made, key)


def test_old_pins_of_what_we_need_break_nothing(indexed: Site) -> None:
    """Ours comes first on a worker's path; the user's others are there as they were pinned."""
    image = sky.Image(pip=["cloudpickle==1.2.2", "attrs==19.1.0", "six==1.16.0"])

    def versions() -> tuple[str, str, str]:
        from importlib.metadata import version

        return version("cloudpickle"), version("attrs"), version("six")

    def used() -> tuple[str, bool]:
        import attr
        import cloudpickle

        # What attrs says of its version is what is installed, and not what is imported.
        return cloudpickle.__version__, hasattr(attr, "define")

    factor = 3

    @sky.function
    def scaled(x: int) -> int:
        print("scaled")
        return x * factor

    pool = sky.Compute(
        provider=indexed.provider(), nodes=2, image=image, console="silent", logging=False, bootstrap_timeout=250
    )
    lines: list[str] = []
    pool.on(sky.Log, lambda event: lines.append(event.line))
    with pool:
        import cloudpickle

        assert sky.function(versions)() >> pool == ("1.2.2", "19.1.0", "1.16.0")
        assert sky.function(used)() @ pool == [(cloudpickle.__version__, True)] * 2
        assert pool.map(scaled, range(20)) == list(range(0, 60, 3))
        assert [info.node for info in sky.function(sky.instance_info)() @ pool] == [0, 1]
        with pytest.raises(ZeroDivisionError):
            sky.function(lambda: 1 / 0)() >> pool
    assert lines == ["scaled"] * 20
