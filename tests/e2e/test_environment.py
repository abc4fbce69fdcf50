"""An image with packages gets an environment of its own, made once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import skyward as sky

pytestmark = pytest.mark.packaging


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKYWARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def test_environment_is_made_once_and_shared() -> None:
    """Both nodes have the package; the second pool starts at once."""

    def version() -> str:
        import six

        return str(six.__version__)

    image = sky.Image(pip=["six==1.16.0"])
    phases: list[sky.BootstrapPhase] = []
    with sky.Compute(nodes=2, image=image, console="silent").on(sky.BootstrapPhase, phases.append) as pool:
        assert sky.function(version)() @ pool == ["1.16.0"] * 2
    assert [phase.phase for phase in phases if phase.event == "completed" and phase.phase != "bootstrap"] == [
        "venv",
        "deps",
    ]
    assert [phase.step for phase in phases if isinstance(phase, sky.BootstrapProgress)] == ["venv", "deps"]
    began = time.monotonic()
    with sky.Compute(nodes=2, image=image, console="silent") as pool:
        assert sky.function(version)() @ pool == ["1.16.0"] * 2
    assert time.monotonic() - began < 15


def test_package_that_does_not_exist_is_one_error() -> None:
    """It names the package, the command and what to check."""
    pool = sky.Compute(image=sky.Image(pip=["no-such-package-of-skyward"]), console="silent", max_provision_attempts=1)
    with pytest.raises(sky.ProvisionError, match=r"(?s)no-such-package-of-skyward.*Check the package names"):
        pool.open()


def test_users_pins_do_not_break_the_node() -> None:
    """Our side of a worker brings what it needs."""
    image = sky.Image(pip=["attrs==22.1.0", "cloudpickle==2.2.1"])
    with sky.Compute(image=image, console="silent") as pool:
        assert sky.function(lambda x: sky.instance_info().node + x)(1) >> pool == 1


def test_operations_of_plugins_run_in_the_environment(tmp_path: Path) -> None:
    """Those that stay inside it; what would change the machine is reported and not run."""
    from skyward.model.spec.op import Shell

    told: list[str] = []
    plugin = sky.Plugin.create("ops").with_bootstrap(
        lambda cluster: (Shell('touch "$VIRTUAL_ENV/made"', scope="environment"), f"touch {tmp_path}/machine")
    )
    pool = sky.Compute(console="silent", plugins=[plugin])
    pool.on(sky.BootstrapConsole, lambda event: told.append(event.line))
    with pool:
        assert sky.function(lambda: __import__("os").path.exists(__import__("sys").prefix + "/made"))() >> pool
    assert any("not run on this machine" in line for line in told)
    assert not (tmp_path / "machine").exists()
