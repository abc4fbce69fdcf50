"""
Pools that joblib or scikit-learn use while they are open, and the same for a pool that is open already.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attrs import evolve

import skyward as sky
from skyward import Plugin
from skyward.errors import UsageError
from skyward_sklearn import plugins

__all__ = ["JoblibPool", "ScikitLearnPool", "joblib_backend", "sklearn_backend"]


class JoblibPool(sky.Compute):
    """
    A pool that joblib uses while it is open.

    It is `sky.Compute` with `sky.plugins.joblib()`, whose tasks each have a process unless you say otherwise.

    Args:
        specs: As for `sky.Compute`.
        options: As for `sky.Compute`.
        joblib_version: As `sky.plugins.joblib(version=...)` takes it.
        keywords: As for `sky.Compute`.

    Raises:
        ConfigError: If the version is none.
        UsageError: If it is to be made from a name: the plugin is in the file then.

    >>> from joblib import Parallel, delayed
    >>> with JoblibPool(concurrency=2, console="silent"):
    ...     Parallel(n_jobs=-1)(delayed(abs)(number) for number in (-1, -2, -3))
    [1, 2, 3]
    """

    def __init__(
        self,
        *specs: sky.Spec,
        options: sky.Options | None = None,
        joblib_version: str | None = None,
        **keywords: Any,
    ) -> None:
        specs, keywords = _with_plugin(plugins.joblib(joblib_version), type(self).__name__, specs, options, keywords)
        super().__init__(*specs, options=options, **keywords)


class ScikitLearnPool(sky.Compute):
    """
    A pool that scikit-learn uses while it is open.

    It is `sky.Compute` with `sky.plugins.sklearn()`, whose tasks each have a process unless you say otherwise.

    Args:
        specs: As for `sky.Compute`.
        options: As for `sky.Compute`.
        sklearn_version: As `sky.plugins.sklearn(version=...)` takes it.
        keywords: As for `sky.Compute`.

    Raises:
        ConfigError: If the version is none.
        UsageError: If it is to be made from a name: the plugin is in the file then.
    """

    def __init__(
        self,
        *specs: sky.Spec,
        options: sky.Options | None = None,
        sklearn_version: str | None = None,
        **keywords: Any,
    ) -> None:
        specs, keywords = _with_plugin(plugins.sklearn(sklearn_version), type(self).__name__, specs, options, keywords)
        super().__init__(*specs, options=options, **keywords)


def _with_plugin(
    ours: Plugin, kind: str, specs: tuple[sky.Spec, ...], options: sky.Options | None, keywords: dict[str, Any]
) -> tuple[tuple[sky.Spec, ...], dict[str, Any]]:
    """Return what a pool is made from, with a plugin, and with a process for each task if nothing else is said."""
    if "name" in keywords:
        raise UsageError(
            f"{kind} cannot be made from a name.",
            hint=f"Put plugins = [{ours.name!r}] into skyward.toml, and use sky.Compute(name=...).",
        )
    if specs:
        return tuple(evolve(spec, plugins=(*spec.plugins, ours)) for spec in specs), keywords
    keywords = {**keywords, "plugins": (*keywords.get("plugins", ()), ours)}
    if keywords.get("worker") is None and (options is None or options.worker is None):
        keywords.setdefault("executor", "process")
    return specs, keywords


@contextmanager
def joblib_backend(pool: sky.Compute) -> Iterator[sky.Compute]:
    """
    Set an open pool as joblib's backend, in this thread and for the time of a `with` block.

    Args:
        pool: The pool. Its nodes need joblib, which `sky.plugins.joblib()` brings.

    Raises:
        PoolClosedError: If it is not open.
        UsageError: If it is no pool.

    >>> from joblib import Parallel, delayed
    >>> with sky.Compute(console="silent") as pool, joblib_backend(pool):
    ...     Parallel(n_jobs=-1)(delayed(abs)(number) for number in (-1, -2))
    [1, 2]
    """
    from skyward_sklearn.backend import slots_of
    from skyward_sklearn.serving import serving

    if not isinstance(pool, sky.Compute):
        raise UsageError(
            f"joblib_backend takes an open pool, not {pool!r}.",
            hint="Write: with sky.Compute(...) as pool, sky.integrations.joblib_backend(pool): ...",
        )
    slots_of(pool)
    with serving(pool):
        yield pool


sklearn_backend = joblib_backend
"""scikit-learn asks joblib, so this is the same."""
