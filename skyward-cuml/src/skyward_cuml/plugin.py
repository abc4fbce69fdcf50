"""
The plugin: what it refuses, which packages nodes get, and scikit-learn's acceleration in their workers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attrs import field, frozen

from skyward import ConfigError, Image, InstanceInfo, PluginError
from skyward.hookspecs import Cluster, hookimpl
from skyward.model.fields.requirement import check_named_once, cuda_of, package_names, version_of
from skyward.packages import importing, with_packages

__all__ = ["ACCELERATED", "TOO_OLD", "Cuml"]

TOO_OLD = {
    "12": frozenset({"Kepler", "Maxwell", "Pascal"}),
    "13": frozenset({"Kepler", "Maxwell", "Pascal", "Volta"}),
}
"""Generations of GPUs that the packages for a release of CUDA do not run on."""

INDEX = "https://pypi.nvidia.com"
"""Where the packages are that the usual index has only from `ON_PYPI` on."""

ON_PYPI = (25, 10)

ACCELERATED = ("sklearn", "umap", "hdbscan")
"""Packages that are accelerated, if they are imported after that was switched on."""


def _cuda(value: object) -> str:
    """Return the release of CUDA that there are packages for."""
    found = cuda_of(value)
    release = "" if found is None else str(found.major)
    if release not in TOO_OLD:
        known = " and ".join(f'"{each}"' for each in TOO_OLD)
        raise ConfigError(f"cuda={value!r} is no release of CUDA that cuML is built for; those are {known}.")
    return release


def _accelerate(instance: object, attribute: Any, value: object) -> None:
    """Refuse what is neither yes nor no."""
    if not isinstance(value, bool):
        raise ConfigError(f"accelerate must be True or False, not {value!r}.")


def _version(value: Any) -> str | None:
    """Return the version to install, checked."""
    return version_of(value, example="26.10.0")


@frozen
class Cuml:
    """
    Have cuML on the nodes, and scikit-learn's own classes run on their GPUs.

    Args:
        cuda: Which CUDA the packages are to be built for: `"12"`, or `"13"` for drivers from 580 on; also as `"12.8"`
            or `"cu12"`.
        version: Version of cuML, such as `"26.10.0"`; None or `"latest"` for the newest.
        accelerate: Whether scikit-learn, UMAP and HDBSCAN run on the GPU without a change; without, only what is
            imported from `cuml` does.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> Cuml(cuda="12.8").package
    'cuml-cu12'
    """

    cuda: str = field(default="12", converter=_cuda)
    version: str | None = field(default=None, converter=_version)
    accelerate: bool = field(default=True, validator=_accelerate, kw_only=True)
    name = "cuml"

    @property
    def package(self) -> str:
        """Return the name of the package; `cuml` itself is another one."""
        return f"cuml-cu{self.cuda}"

    @hookimpl
    def skyward_validate(self, cluster: Cluster) -> None:
        """Refuse nodes that cuML does not run on, before anything is rented."""
        named = package_names(cluster.spec.image.pip)
        check_named_once([self.package], self.version, named)
        if others := sorted(named & {f"cuml-cu{each}" for each in TOO_OLD} - {self.package}):
            raise ConfigError(f"Image(pip=[...]) names {others[0]}, and cuda={self.cuda!r} wants {self.package}.")
        if cluster.provider == "local":
            return
        accelerator = cluster.offer.accelerator
        if accelerator is None:
            raise ConfigError("cuML needs NVIDIA's GPUs, and the nodes have none.", hint="Ask for: accelerator=.")
        if accelerator.manufacturer not in (None, "NVIDIA"):
            raise ConfigError(
                f"cuML needs NVIDIA's GPUs, and the nodes have {accelerator.name} of {accelerator.manufacturer}."
            )
        if accelerator.architecture in TOO_OLD[self.cuda]:
            newer = "Ask for one of the generation Turing or newer"
            raise ConfigError(
                f"cuML for CUDA {self.cuda} does not run on {accelerator.name}, which is of the generation "
                f"{accelerator.architecture}.",
                hint=f'{newer}, or take cuda="12".' if accelerator.architecture == "Volta" else f"{newer}.",
            )

    @hookimpl
    def skyward_transform(self, image: Image, cluster: Cluster) -> Image:
        """Add the package, unless the image names it, or nodes on this machine have it as it is."""
        old = self.version is not None and _release(self.version) < ON_PYPI
        wanted = self.package + (f"=={self.version}" if self.version else "")
        return with_packages(image, [wanted], cluster, INDEX if old else None)

    @hookimpl
    @contextmanager
    def skyward_around_process(self, info: InstanceInfo) -> Iterator[None]:
        """Switch the acceleration on before the first task, and before scikit-learn is imported."""
        if self.accelerate:
            self._switch_on(info)
        yield

    def _switch_on(self, info: InstanceInfo) -> None:
        """
        Enable the GPU for what is imported from now on.

        Raises:
            PluginError: If it has been imported, or cuML cannot be.
        """
        if late := [name for name in ACCELERATED if name in sys.modules]:
            raise self._failed(
                f"{late[0]} was imported on node {info.node} before cuML could accelerate it.",
                "Put cuml before the plugin that imports it, and import it inside functions.",
            )
        try:
            with importing(self.name, info, "leave the environment to it"):
                from cuml.accel import install
        except ImportError as error:
            # Libraries of the driver that are not there.
            raise self._failed(
                f"cuML cannot be loaded on node {info.node}: {error}.", "It needs a GPU there."
            ) from error
        install()

    def _failed(self, message: str, hint: str) -> PluginError:
        return PluginError(message, plugin=self.name, hook="around_process", hint=hint)


def _release(version: str) -> tuple[int, ...]:
    """Return year and month of a version."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
