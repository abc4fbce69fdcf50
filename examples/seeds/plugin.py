"""
Build a plugin out of functions: what nodes get, and what surrounds each task.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import skyward as sky
from skyward.plugins import Plugin


def twice(fn: Any) -> Any:
    @wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        return 2 * fn(*args, **kwargs)

    return run


@contextmanager
def around(*what: Any) -> Iterator[None]:
    yield


my_plugin = (
    Plugin.create("doubler")
    .with_image_transform(lambda image, cluster: image)
    .with_bootstrap(lambda cluster: ("echo hi",))
    .with_decorator(twice)
    .with_around_app(around)
    .with_around_process(around)
    .with_around_client(around)
    .with_launcher(lambda command, context: command)
)


# What comes with distributions of its own.
built_in = [
    sky.plugins.torch(backend=None, cuda="cu128", version="latest", vision=None, audio=None),
    sky.plugins.jax(cuda="cu124"),
    sky.plugins.keras(backend="jax"),
    sky.plugins.cuml(cuda="cu12"),
    sky.plugins.joblib(version=None),
    sky.plugins.sklearn(version=None),
    sky.plugins.mig("3g.40gb"),
    sky.plugins.mps(active_thread_percentage=None, pinned_memory_limit=None),
    sky.plugins.accelerate(config=None),
]


@sky.function
def answer() -> int:
    return 21


with sky.Compute(provider=sky.Local(), plugins=[my_plugin]) as pool:
    doubled = answer() >> pool

print(f"doubled by a plugin: {doubled} | built in: {len(built_in)}")
