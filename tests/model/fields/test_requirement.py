"""Packages and versions, as frameworks' plugins are given them."""

from __future__ import annotations

from typing import Any

import pytest

from skyward import ConfigError
from skyward.model.fields.requirement import Cuda, companion, cuda_of, package_names, version_of


@pytest.mark.parametrize("requirement", ["torch", "Torch>=2", "torch @ file:///torch.whl", " torch[opt-einsum]"])
def test_a_requirement_names_its_package(requirement: str) -> None:
    """Whatever it says besides."""
    assert {"torch"} == package_names([requirement])


@pytest.mark.parametrize("version", ["2.13.0", "2.13", "2.14.0rc1", "2.14.0.dev20260101", "2.13.0+cu128"])
def test_versions_are_taken(version: str) -> None:
    """Also those of builds and of what is not released."""
    assert version == version_of(version, example="2.13.0")


@pytest.mark.parametrize("version", ["newest", ">=2", "", "2.13.0; rm", 2.13, ["2"], True])
def test_what_is_no_version_is_refused(version: Any) -> None:
    """Before anything is rented to try it."""
    with pytest.raises(ConfigError, match=r"version must be a version such as \"2\.13\.0\", or \"latest\", not"):
        version_of(version, example="2.13.0")


@pytest.mark.parametrize("version", [None, "latest"])
def test_the_newest_has_two_spellings(version: Any) -> None:
    """Both leave it to pip."""
    assert version_of(version, example="2.13.0") is None


@pytest.mark.parametrize(
    ("wish", "expected"), [(None, False), (False, False), (True, True), ("latest", True), ("0.28.0", "0.28.0")]
)
def test_a_companion_is_wanted_or_not_or_in_a_version(wish: Any, expected: bool | str) -> None:
    """As torchvision beside torch."""
    assert expected == companion(wish, "vision", example="0.28.0")


@pytest.mark.parametrize(
    ("spelt", "expected"),
    [
        *((each, Cuda(12, 8)) for each in ("12.8", "cu128", "CU128", "cuda12.8", "12.8.1", 12.8)),
        *((each, Cuda(12)) for each in ("12", "cu12", "cuda12", 12)),
        *((each, None) for each in ("", "new", "cu", "8", "cu1", True, None, ["12"], "12.8+cu128")),
    ],
)
def test_a_release_of_cuda_has_several_spellings(spelt: Any, expected: Cuda | None) -> None:
    """Those of NVIDIA, of torch's indexes, and of JAX's and cuML's packages."""
    assert expected == cuda_of(spelt)
