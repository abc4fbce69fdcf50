"""Packages and versions, as frameworks' plugins are given them."""

from __future__ import annotations

from typing import Any

import pytest

from skyward import ConfigError
from skyward.model.requirement import checked_version, package_names


@pytest.mark.parametrize("requirement", ["torch", "Torch>=2", "torch @ file:///torch.whl", " torch[opt-einsum]"])
def test_a_requirement_names_its_package(requirement: str) -> None:
    """Whatever it says besides."""
    assert {"torch"} == package_names([requirement])


@pytest.mark.parametrize("version", ["2.13.0", "2.13", "2.14.0rc1", "2.14.0.dev20260101", "2.13.0+cu128"])
def test_versions_are_taken(version: str) -> None:
    """Also those of builds and of what is not released."""
    checked_version(version, "version", example="2.13.0")


@pytest.mark.parametrize("version", ["latest", ">=2", "", "2.13.0; rm", 2.13, ["2"]])
def test_what_is_no_version_is_refused(version: Any) -> None:
    """Before anything is rented to try it."""
    with pytest.raises(ConfigError, match=r"version must be a version such as \"2\.13\.0\", not"):
        checked_version(version, "version", example="2.13.0")
