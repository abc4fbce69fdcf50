"""
cuML's acceleration is switched on in each worker process before scikit-learn is imported there.

A package `cuml` that only takes note of that stands for NVIDIA's, which does not load without a GPU.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import skyward as sky

pytestmark = pytest.mark.slow

QUIET: dict[str, Any] = {"console": "silent", "logging": False}
INSTALL = """
import os, sys

def install(disable_uvm=False, log_level=None):
    os.environ["ACCELERATED"] = os.environ.get("ACCELERATED", "") + ("late" if "sklearn" in sys.modules else "in time")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a package of the name where this process and those it starts find it."""
    (tmp_path / "cuml" / "accel").mkdir(parents=True)
    (tmp_path / "cuml" / "__init__.py").touch()
    (tmp_path / "cuml" / "accel" / "__init__.py").write_text(INSTALL)
    (tmp_path / "cuml_cu12-26.10.0.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: cuml-cu12\nVersion: 26.10.0\n"
    (tmp_path / "cuml_cu12-26.10.0.dist-info" / "METADATA").write_text(metadata)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def look() -> tuple[str, bool]:
    """Tell what was done before this task, and use scikit-learn."""
    before = "sklearn" in sys.modules
    from sklearn.linear_model import Ridge

    assert Ridge
    return os.environ.get("ACCELERATED", ""), before


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["before sklearn", "after sklearn"])
def test_it_is_on_before_sklearn_is_imported(package: Path, order: tuple[int, int]) -> None:
    """Once in each process, in whatever order with the plugin sklearn, which imports it in no worker."""
    both = (sky.plugins.cuml(version="26.10.0"), sky.plugins.sklearn())
    plugins = [both[index] for index in order]
    with sky.Compute(per_node=2, plugins=plugins, **QUIET) as pool:
        assert [("in time", False)] * 2 == sky.function(look)() @ pool
        assert [("in time", True)] * 2 == sky.function(look)() @ pool


def test_it_is_off_where_nobody_wants_it(package: Path) -> None:
    """`cuml` itself can be imported all the same."""
    with sky.Compute(plugins=[sky.plugins.cuml(accelerate=False)], **QUIET) as pool:
        assert ("", False) == sky.function(look)() >> pool


@contextmanager
def _imports_sklearn(info: sky.InstanceInfo) -> Iterator[None]:
    import sklearn

    assert sklearn
    yield


def test_a_plugin_that_imports_sklearn_comes_after_it(package: Path) -> None:
    """The wrong order is one error that names the right one."""
    other = sky.Plugin.create("other").with_around_process(_imports_sklearn)
    with (
        pytest.raises(sky.PluginError, match=r"sklearn was imported on node 0 before cuML could.*Put cuml before"),
        sky.Compute(plugins=[other, sky.plugins.cuml()], **QUIET),
    ):
        raise AssertionError
    with sky.Compute(plugins=[sky.plugins.cuml(), other], **QUIET) as pool:
        assert ("in time", True) == sky.function(look)() >> pool


def test_a_version_that_does_not_exist_is_one_clear_error(package: Path, tmp_path: Path) -> None:
    """It names the package and the version."""
    (tmp_path / "cuml-cu12").mkdir()
    (tmp_path / "cuml-cu12" / "index.html").write_text("<!DOCTYPE html><html><body></body></html>")
    image = sky.Image(pip_indexes=[sky.PipIndex(f"file://{tmp_path}", ["cuml-cu12"])])
    with (
        pytest.raises(sky.SkywardError, match=r"cuml-cu12==99\.0") as caught,
        sky.Compute(plugins=[sky.plugins.cuml(version="99.0")], image=image, **QUIET),
    ):
        raise AssertionError
    assert "or what a plugin was given for version=" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import rmm", "sky.plugins.cuml needs rmm, which is not installed on node 0"),
        (
            "raise ImportError('libcuda.so.1: cannot open')",
            "cuML cannot be loaded on node 0: libcuda.so.1: cannot open",
        ),
        ("def install():\n    raise RuntimeError('no CUDA-capable device is detected')", "no CUDA-capable device"),
    ],
)
def test_cuml_that_does_not_load_is_one_error(package: Path, text: str, message: str) -> None:
    """As on a machine without a GPU."""
    (package / "cuml" / "accel" / "__init__.py").write_text(text)
    with pytest.raises(sky.PluginError, match=message), sky.Compute(plugins=[sky.plugins.cuml()], **QUIET):
        raise AssertionError
