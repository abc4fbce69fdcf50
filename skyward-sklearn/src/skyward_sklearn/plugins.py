"""
The plugins: what nodes need to run tasks of joblib, and a pool that is joblib's backend while it is open.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import PackageNotFoundError, version as installed_version
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward import ConfigError, Plugin
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext

if TYPE_CHECKING:
    from skyward import Image, InstanceInfo

__all__ = ["joblib", "sklearn"]

SHARE = "SKYWARD_JOBLIB_SHARE"
"""Environment variable that tells a worker how many tasks share its machine."""


def joblib(version: str | None = None) -> Plugin:
    """
    Have joblib run `Parallel(n_jobs=-1)` on the pool.

    Args:
        version: Of joblib on the nodes; None for the one that is installed here.

    Raises:
        ConfigError: If the version is no text such as `"1.5.2"`.

    >>> joblib().name
    'joblib'
    """
    return _plugin("joblib", {"joblib": _version(version)})


def sklearn(version: str | None = None) -> Plugin:
    """
    Have scikit-learn run what has `n_jobs=-1` on the pool.

    Args:
        version: Of scikit-learn on the nodes; None for the one that is installed here, which is the only one that is
            sure to read what this one pickles.

    Raises:
        ConfigError: If the version is no text such as `"1.7.2"`.

    >>> sklearn("1.7.2").name
    'sklearn'
    """
    return _plugin("sklearn", {"scikit-learn": _version(version), "joblib": None, "numpy": None, "scipy": None})


def _plugin(name: str, packages: Mapping[str, str | None]) -> Plugin:
    from skyward_sklearn.serving import register

    # From now on joblib says what is missing, if it is asked for the backend and no pool is open.
    register()

    def transform(image: Image, cluster: Cluster) -> Image:
        return _with_packages(image, cluster, packages)

    return (
        Plugin.create(name)
        .with_image_transform(transform)
        .with_launcher(_told_its_share)
        .with_around_process(_process)
        .with_around_client(_client)
    )


def _version(value: object) -> str | None:
    """Return the version to install, checked."""
    if value is not None and (not isinstance(value, str) or not value[:1].isdigit()):
        raise ConfigError(f'version must be a version such as "1.7.2", not {value!r}.')
    return value


def _with_packages(image: Image, cluster: Cluster, packages: Mapping[str, str | None]) -> Image:
    """Return the image with the packages that tasks need, in the versions that pickled them."""
    here = {package: _installed(package) for package in packages}
    wanted = {package: version or here[package] for package, version in packages.items()}
    # Nodes of this machine run the client's own interpreter, unless the image asks for an environment.
    if cluster.provider == "local" and not image.needs_environment and wanted == here and all(here.values()):
        return image
    asked = {_name(requirement) for requirement in image.pip}
    needed = (package + (f"=={version}" if version else "") for package, version in wanted.items())
    return evolve(image, pip=(*image.pip, *(each for each in needed if _name(each) not in asked)))


def _installed(package: str) -> str | None:
    """Return the version of a package that the client has."""
    try:
        return installed_version(package)
    except PackageNotFoundError:
        return None


def _name(requirement: str) -> str:
    """
    Return the name of the package that a requirement asks for.

    >>> _name("Scikit_Learn[tests]>=1.5 ; python_version > '3'")
    'scikit-learn'
    """
    name = requirement.lstrip()
    end = next((at for at, mark in enumerate(name) if not (mark.isalnum() or mark in "._-")), len(name))
    return name[:end].lower().replace("_", "-").replace(".", "-")


def _told_its_share(command: LaunchCommand, context: LaunchContext) -> LaunchCommand:
    """Tell a worker process how many tasks run at once on its machine."""
    cluster = context.cluster
    tasks = cluster.ranks_per_node * cluster.worker.concurrency
    # All nodes of this provider are one machine.
    if cluster.provider == "local":
        tasks *= cluster.nodes
    return evolve(command, env={**command.env, SHARE: str(tasks)})


@contextmanager
def _process(info: InstanceInfo) -> Iterator[None]:
    """Give a worker process its share of the machine's threads, before a library reads how many it has."""
    from joblib import cpu_count
    from joblib.parallel import ParallelBackendBase

    from skyward_sklearn.serving import register

    register()
    threads = max(1, cpu_count() // int(os.environ.get(SHARE, "1")))
    for name in ParallelBackendBase.MAX_NUM_THREADS_VARS:
        os.environ.setdefault(name, str(threads))
    yield


def _client(pool: Any, cluster: Cluster) -> AbstractContextManager[None]:
    """Have joblib use the pool, where it is opened."""
    from skyward_sklearn.serving import serving

    return serving(pool)
