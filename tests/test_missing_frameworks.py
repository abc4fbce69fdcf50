"""Plugins of frameworks on nodes that lack what they bring, as when a later plugin replaced the image's packages."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

import skyward as sky
from skyward.plugin import completed, entered


@pytest.mark.parametrize(
    ("plugin", "missing", "named"),
    [
        (sky.plugins.torch(), "torch", "torch"),
        (sky.plugins.jax(), "jax", "jax"),
        (sky.plugins.keras(backend="jax"), "jax", "jax"),
        (sky.plugins.tensorflow(), "tensorflow", "tensorflow"),
        (sky.plugins.accelerate(), "torch", "torch"),
        (sky.plugins.transformers(), "torch", "torch"),
    ],
)
def test_a_node_that_lacks_the_framework_names_the_plugin_that_brings_it(plugin: Any, missing: str, named: str) -> None:
    """Before the first task, with what to write; what builds on another needs that first."""
    if find_spec(missing) is not None:
        pytest.skip(f"{missing} is here")
    with (
        pytest.raises(
            sky.PluginError,
            match=rf"sky\.plugins\.{named} needs {missing}, which is not installed on node 1.*sky\.plugins\.{named}\(",
        ),
        entered(completed([plugin]), "around_process", sky.InstanceInfo(node=1)),
    ):
        raise AssertionError
