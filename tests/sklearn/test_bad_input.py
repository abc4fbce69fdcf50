"""
What cannot work is refused, in words that say what to write instead.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from joblib import Parallel, delayed, effective_n_jobs, parallel_config

import skyward as sky


def test_backend_without_a_pool_is_refused() -> None:
    """One error, which says how a pool is opened."""
    sky.plugins.joblib()
    with pytest.raises(
        sky.NoPoolError, match=r"'skyward', and no pool is open for it.*plugins=\[sky.plugins.joblib\(\)\]"
    ):
        Parallel(n_jobs=2, backend="skyward")([delayed(abs)(-1)])
    with parallel_config(backend="skyward"), pytest.raises(sky.NoPoolError, match="no pool is open"):
        effective_n_jobs(-1)


def test_pool_of_one_slot_is_used_until_it_is_left() -> None:
    """Joblib would take one job for a reason to stay here; later, what was made inside the pool is refused."""
    with sky.integrations.JoblibPool(console="silent") as pool:
        unused, used = Parallel(n_jobs=-1), Parallel(n_jobs=-1)
        assert 1 == effective_n_jobs(-1)
        assert os.getpid() not in used(delayed(os.getpid)() for _ in range(3))
        with used:
            assert os.getpid() not in used(delayed(os.getpid)() for _ in range(3))
    for parallel in (unused, used):
        with pytest.raises(sky.PoolClosedError, match="'pool', which is not open"):
            parallel([delayed(abs)(-1)])
    with pytest.raises(sky.PoolClosedError, match="which is not open"), sky.integrations.joblib_backend(pool):
        pass


def test_pool_that_was_not_opened_is_refused() -> None:
    """Before joblib hears of it."""
    with (
        pytest.raises(sky.PoolClosedError, match=r"inside the pool's with block"),
        sky.integrations.joblib_backend(sky.Compute(console="silent")),
    ):
        pass


def test_what_is_no_pool_is_refused() -> None:
    """With the line to write."""
    with (
        pytest.raises(sky.errors.UsageError, match=r"sky.integrations.joblib_backend\(pool\)"),
        sky.integrations.joblib_backend("local"),
    ):
        pass


@pytest.mark.parametrize("make", [sky.integrations.JoblibPool, sky.integrations.ScikitLearnPool])
def test_pool_of_a_name_says_where_the_plugin_belongs(make: Any) -> None:
    """A named pool is made by the file alone."""
    with pytest.raises(sky.errors.UsageError, match=r"skyward\.toml.*sky\.Compute\(name=\.\.\.\)"):
        make(name="train")


@pytest.mark.parametrize("version", ["", "newest", ">=1.5", 1.7])
def test_version_is_a_version(version: Any) -> None:
    """Not a requirement."""
    with pytest.raises(sky.ConfigError, match=r'version must be a version such as "1\.7\.2"'):
        sky.plugins.sklearn(version)


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("plugin", "package"), [(sky.plugins.joblib, "joblib"), (sky.plugins.sklearn, "scikit-learn")])
def test_a_version_that_does_not_exist_is_one_clear_error(
    plugin: Any, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the package and the version."""
    monkeypatch.setenv("SKYWARD_CACHE", str(tmp_path / "cache"))
    for name in ("joblib", "scikit-learn"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("<!DOCTYPE html><html><body></body></html>")
    image = sky.Image(pip_indexes=[sky.PipIndex(f"file://{tmp_path}", ["joblib", "scikit-learn"])])
    with (
        pytest.raises(sky.SkywardError, match=rf"{package}==99\.0") as caught,
        sky.Compute(plugins=[plugin(version="99.0")], image=image, console="silent"),
    ):
        raise AssertionError
    assert "or what a plugin was given for version=" in str(caught.value)


@pytest.mark.slow
def test_node_without_joblib_says_which_plugin_brings_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the pool has an environment of its own, and was opened without the plugin."""
    monkeypatch.setenv("SKYWARD_CACHE", str(tmp_path / "cache"))
    wheel = tmp_path / "nothing-1.0-py3-none-any.whl"
    facts = {"METADATA": "Metadata-Version: 2.1\nName: nothing\nVersion: 1.0\n", "RECORD": ""}
    facts["WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(wheel, "w") as file:
        for name, text in facts.items():
            file.writestr(f"nothing-1.0.dist-info/{name}", text)
    with (
        sky.Compute(image=sky.Image(pip=[f"nothing @ {wheel.as_uri()}"]), console="silent") as pool,
        sky.integrations.joblib_backend(pool),
        pytest.raises(sky.PluginError, match=r"'pool' have no joblib.*plugins=\[sky.plugins.joblib\(\)\]"),
    ):
        Parallel(n_jobs=-1)([delayed(abs)(-1)])


def test_plugin_does_nothing_around_one_function() -> None:
    """So that no node waits for it to."""
    with pytest.raises(sky.errors.UsageError, match="Give it to the pool"):
        sky.integrations.sklearn()(abs)
