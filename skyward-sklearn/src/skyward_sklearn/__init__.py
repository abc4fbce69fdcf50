"""
joblib and scikit-learn on the nodes of a pool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.hookspecs import hookimpl


@hookimpl
def skyward_plugins() -> Mapping[str, Callable[..., Any]]:
    """Register `sky.plugins.joblib` and `sky.plugins.sklearn`."""
    from skyward_sklearn.plugins import joblib, sklearn

    return {"joblib": joblib, "sklearn": sklearn}


@hookimpl
def skyward_integrations() -> Mapping[str, Any]:
    """Register the pools that have these plugins, and what makes any open pool joblib's backend."""
    from skyward_sklearn.pools import JoblibPool, ScikitLearnPool, joblib_backend, sklearn_backend

    return {
        "JoblibPool": JoblibPool,
        "ScikitLearnPool": ScikitLearnPool,
        "joblib_backend": joblib_backend,
        "sklearn_backend": sklearn_backend,
    }
