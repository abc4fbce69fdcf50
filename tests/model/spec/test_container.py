"""
`sky.containers` names Docker images that exist.
"""

from __future__ import annotations

from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward.model.spec import container as containers
from skyward.model.spec.container import DockerImage, docker_image


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        (containers.cuda("12.9", variant="devel", ubuntu="24.04"), "nvidia/cuda:12.9.1-devel-ubuntu24.04"),
        (containers.cuda("12.9.0"), "nvidia/cuda:12.9.0-devel-ubuntu24.04"),
        (containers.cuda("12.4", variant="cudnn-runtime"), "nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04"),
        (containers.cuda("13.0"), "nvidia/cuda:13.0.0-devel-ubuntu24.04"),
        (containers.ubuntu("24.04"), "ubuntu:24.04"),
        (containers.pytorch("2.8", cuda="12.8"), "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-devel"),
        (containers.pytorch("2.3", cuda="12.1", variant="runtime"), "pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime"),
        (containers.pytorch("25.05"), "nvcr.io/nvidia/pytorch:25.05-py3"),
        (containers.runpod_base(), "runpod/base:1.0.3-ubuntu2404"),
        (containers.runpod_base(cuda="12.8", ubuntu="22.04"), "runpod/base:1.0.3-cuda1281-ubuntu2204"),
        (containers.runpod_pytorch("2.8"), "runpod/pytorch:1.0.3-cu1281-torch280-ubuntu2404"),
        (containers.runpod_pytorch("2.9.1", cuda="12.9"), "runpod/pytorch:1.0.3-cu1290-torch291-ubuntu2404"),
    ],
)
def test_a_preset_names_the_image(image: DockerImage, tag: str) -> None:
    """Each preset gives the tag under which the image is published."""
    assert tag == image.tag == str(image)


def test_what_is_in_the_image_is_kept() -> None:
    """Providers read the versions of CUDA and Ubuntu from the value."""
    image = containers.cuda("12.9.1", ubuntu="22.04")
    assert ("12.9", "22.04") == (image.cuda, image.ubuntu)


def test_any_image_can_be_named() -> None:
    """`of` takes a tag of any registry, with what is known of it."""
    image = containers.DockerImage.of("registry.example:5000/team/train:1.2", cuda="12.8", ubuntu="22.04")
    assert DockerImage("registry.example:5000/team/train:1.2", "12.8", "22.04") == image
    assert {image: 1}[image] == 1


@pytest.mark.parametrize("tag", ["", "two words", "UPPER/case", "name:", "a;rm -rf", None, 5])
def test_what_names_no_image_is_refused(tag: object) -> None:
    """A tag becomes part of command lines, so that only names of images are taken."""
    with pytest.raises(ConfigError, match=r"^tag=.* is no name of a Docker image"):
        DockerImage.of(tag)  # type: ignore[arg-type]


def test_an_unknown_variant_is_answered_with_those_there_are() -> None:
    """The error lists what is accepted."""
    with pytest.raises(ConfigError, match=r"variant='develop'.*base, runtime, devel, cudnn-runtime"):
        containers.cuda("12.9", variant="develop")  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["12", "12.x", "", "12.9.1.1", "latest"])
def test_what_is_no_version_is_refused(version: str) -> None:
    """A version is numbers with points between."""
    with pytest.raises(ConfigError, match=r'^version=.* is no version. Write "12.8"'):
        containers.cuda(version)


def test_a_version_given_as_a_number_is_answered_with_the_text() -> None:
    """12.10 as a number would be 12.1, so that text is asked for."""
    with pytest.raises(ConfigError, match=r'version must be a version as text, not 12.9. Write version="12.9"'):
        containers.cuda(12.9)  # type: ignore[arg-type]


def test_a_release_of_nvidia_has_its_own_cuda() -> None:
    """CUDA can't be chosen for an image that has one already."""
    with pytest.raises(ConfigError, match=r"cuda='12.8' can't be chosen with NVIDIA's release 25.05"):
        containers.pytorch("25.05", cuda="12.8")


@pytest.mark.parametrize("given", [containers.ubuntu("24.04"), "ubuntu:24.04"])
def test_a_provider_takes_an_image_or_its_name(given: Any) -> None:
    """Both name the same image; only one says what is in it."""
    assert "ubuntu:24.04" == docker_image(given, "docker_image").tag


@pytest.mark.parametrize("given", [None, 5, "two words", containers.ubuntu])
def test_a_provider_names_its_parameter_where_the_image_is_none(given: Any) -> None:
    """The error says what to write instead."""
    with pytest.raises(ConfigError, match=r"^container_image=.* is no name of a Docker image. Write sky.containers"):
        docker_image(given, "container_image")
