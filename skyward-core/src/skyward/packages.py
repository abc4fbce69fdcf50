"""
Adds packages to an image for a plugin, as far as nodes do not have them anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from attrs import evolve

from skyward.errors import PluginError
from skyward.model.fields.requirement import package_names
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.instance import InstanceInfo
from skyward.model.spec.image import Image, PipIndex

__all__ = ["are_here", "importing", "installed", "with_packages"]

_PINNED = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?(?:==(.+))?")


def are_here(packages: Iterable[str]) -> bool:
    """
    Return whether this interpreter has packages, in the version that each is asked for, if any.

    Args:
        packages: As pip takes them, with `==` or without.

    >>> are_here(["attrs", "pluggy"]), are_here(["attrs==0.1"]), are_here(["no-such-package"])
    (True, False, False)
    """
    return all(map(_is_here, packages))


def with_packages(image: Image, wanted: Iterable[str], cluster: Cluster, index: str | None = None) -> Image:
    """
    Add packages to an image that does not name them itself, unless nodes on this machine have them as it is.

    Args:
        image: The image.
        wanted: The packages, as pip takes them, with `==` or without.
        cluster: Whose nodes they are for.
        index: Where they come from, as far as the image does not say so itself; None for the usual index.

    >>> from skyward.model.instances.offer import Offer
    >>> from skyward.model.spec.spec import Spec
    >>> offer = Offer(provider="cloud", instance_type="small")
    >>> cluster = Cluster(pool_id="a1", pool_name="train", spec=Spec(), offer=offer, provider="cloud", nodes=2)
    >>> with_packages(Image(pip=["jax==0.9"]), ["jax[cuda12]", "keras"], cluster).pip
    ('jax==0.9', 'keras')
    >>> image = with_packages(Image(pip=["torch==2.13.0"]), ["torch", "torchvision"], cluster, "https://example.org/whl")
    >>> image.pip_indexes
    (PipIndex(url='https://example.org/whl', packages=('torchvision',)),)
    """
    wanted = tuple(wanted)
    if cluster.provider == "local" and not image.needs_environment and are_here(wanted):
        return image
    there = package_names(image.pip)
    added = [package for package in wanted if not package_names([package]) & there]
    routed = package_names(name for each in image.pip_indexes for name in each.packages)
    # What the user names is the user's, with the index that it comes from.
    scoped = sorted(package_names(added) - routed)
    indexes = (*image.pip_indexes, PipIndex(index, scoped)) if index and scoped else image.pip_indexes
    return evolve(image, pip=(*image.pip, *added), pip_indexes=indexes)


@contextmanager
def importing(plugin: str, info: InstanceInfo, hint: str = "") -> Iterator[None]:
    """
    Explain which plugin brings a package that is missing when a node's process starts.

    Args:
        plugin: The plugin that imports it inside.
        info: The rank.
        hint: What to do, beside having the plugin stand last; left out, to name a version.

    Raises:
        PluginError: If a module is not there.

    >>> with importing("torch", InstanceInfo(node=1)):
    ...     import nobody_has_this
    Traceback (most recent call last):
        ...
    skyward.errors.PluginError: sky.plugins.torch needs nobody_has_this, which is not installed on node 1...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise PluginError(
            f"sky.plugins.{plugin} needs {error.name}, which is not installed on node {info.node}.",
            plugin=plugin,
            hook="around_process",
            hint="Put it last in plugins=[...], or "
            + (hint or f'name a version: sky.plugins.{plugin}(version="...")')
            + ".",
        ) from error


def installed(package: str) -> str | None:
    """
    Return the version of a package that this interpreter has; None if it has none.

    Args:
        package: Its name.

    >>> installed("no-such-package") is None
    True
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _is_here(package: str) -> bool:
    pinned = _PINNED.fullmatch(package)
    there = pinned and installed(pinned[1])
    return there is not None and pinned is not None and pinned[2] in (None, there, there.partition("+")[0])
