"""
The plugins: what nodes need to run tasks of joblib, and a pool that is joblib's backend while it is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from skyward import Plugin
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext
from skyward.model.fields.requirement import version_of
from skyward.packages import installed, with_packages
from skyward.processors import sharing

if TYPE_CHECKING:
    from skyward import Image, InstanceInfo

__all__ = ["joblib", "sklearn"]


def joblib(version: str | None = None) -> Plugin:
    """
    Run joblib's `Parallel(n_jobs=-1)` on the pool.

    Args:
        version: Of joblib on the nodes; None for the one that is installed here, `"latest"` for the newest.

    Raises:
        ConfigError: If the version is no text such as `"1.5.2"`.

    >>> joblib().name
    'joblib'
    """
    return _plugin("joblib", (_pinned("joblib", version, example="1.5.2"),))


def sklearn(version: str | None = None) -> Plugin:
    """
    Run what has `n_jobs=-1` in scikit-learn on the pool.

    Args:
        version: Of scikit-learn on the nodes; None for the one that is installed here, which is the only one that is
            sure to read what this one pickles; `"latest"` for the newest.

    Raises:
        ConfigError: If the version is no text such as `"1.7.2"`.

    >>> sklearn("1.7.2").name
    'sklearn'
    """
    beside = (_pinned(package, None) for package in ("joblib", "numpy", "scipy"))
    return _plugin("sklearn", (_pinned("scikit-learn", version, example="1.7.2"), *beside))


def _plugin(name: str, packages: tuple[str, ...]) -> Plugin:
    from skyward_sklearn.serving import register

    # From now on joblib says what is missing, if it is asked for the backend and no pool is open.
    register()

    def transform(image: Image, cluster: Cluster) -> Image:
        return with_packages(image, packages, cluster)

    return (
        Plugin.create(name)
        .with_image_transform(transform)
        .with_launcher(_with_its_share)
        .with_around_process(_process)
        .with_around_client(_client)
    )


def _pinned(package: str, version: object, *, example: str = "") -> str:
    """Return what pip is asked for: the version that is given, else the one that pickles here."""
    wanted = installed(package) if version is None else version_of(version, example=example)
    return f"{package}=={wanted}" if wanted else package


def _with_its_share(command: LaunchCommand, context: LaunchContext) -> LaunchCommand:
    """Return a worker process its share of the machine's threads, before a library reads how many it has."""
    from joblib.parallel import ParallelBackendBase

    return sharing(command, context.cluster, ParallelBackendBase.MAX_NUM_THREADS_VARS)


@contextmanager
def _process(info: InstanceInfo) -> Iterator[None]:
    """Register the backend by its name, so that tasks find it."""
    from skyward_sklearn.serving import register

    register()
    yield


def _client(pool: Any, cluster: Cluster) -> AbstractContextManager[None]:
    """Set the pool as joblib's backend, where it is opened."""
    from skyward_sklearn.serving import serving

    return serving(pool)
