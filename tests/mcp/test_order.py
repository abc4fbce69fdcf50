"""What an agent asks for becomes a request that is bounded, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

import skyward as sky
from skyward.errors import ConfigError, UsageError
from skyward.plan.config.named_pools import NamedPool
from skyward.plan.config.request import Request
from skyward_mcp.order import Order, provider_named, request_of


def asked(order: Order, granted: float | None = None, **keywords: Any) -> Request:
    """Return a request with a budget of 5, of a file that says what the keywords say."""
    file = NamedPool(keywords=keywords, where="[pools.train] in skyward.toml")
    return request_of(
        order, label="a-1", budget=5.0, lease=granted, provider_of=lambda name: sky.Local(), named=lambda name: file
    )


def test_a_pool_has_its_grant_as_its_budget() -> None:
    """Its own file may make that less, and never more."""
    assert 5.0 == asked(Order(provider="aws")).options.budget
    assert 2.0 == asked(Order(pool="train"), budget=2.0).options.budget
    assert 5.0 == asked(Order(pool="train"), budget=9.0).options.budget


def test_nothing_of_it_stays_rented() -> None:
    """No machine waits for the next pool, and no image is kept, whatever the file says; its name is the label."""
    made = asked(Order(pool="train"), linger=600.0, lease=900.0)
    assert (0.0, None) == (made.options.linger, made.options.lease)
    assert not asked(Order(pool="train"), warm_image=True).options.warm_image
    assert "a-1" == made.name == made.options.label
    assert 60.0 == asked(Order(pool="train"), granted=60.0).options.lease


@pytest.mark.parametrize("ttl", [0, None])
def test_machines_that_would_outlive_the_server_are_refused(ttl: float | None) -> None:
    """The file has disarmed the watchdogs that end them when the server is killed."""
    with pytest.raises(ConfigError, match=r"pool 'train' has no ttl= in 1 of its specs.*skyward\.toml"):
        asked(Order(pool="train"), ttl=ttl)


def test_what_was_said_is_in_the_request() -> None:
    """Packages are those of the image."""
    [spec] = asked(Order(provider="aws", nodes=3, accelerator="T4", pip=("numpy",), timeout=60.0)).specs
    assert (3, 60.0, ("numpy",)) == (spec.nodes.desired, spec.timeout, spec.image.pip)
    assert spec.accelerator is not None


def test_machines_are_said_in_one_way() -> None:
    """By a provider, or by the name of a pool."""
    with pytest.raises(UsageError, match=r"pool='train' is described in skyward\.toml, and provider, nodes cannot"):
        asked(Order(pool="train", provider="aws", nodes=2))
    with pytest.raises(UsageError, match="Neither provider nor pool was said"):
        asked(Order(nodes=2))


def test_a_provider_is_one_that_is_allowed() -> None:
    """The error offers the nearest, and says who can allow it."""
    known = {"AWS": object, "Local": object}
    assert "AWS" == provider_named("aws", known, {"aws"})
    with pytest.raises(ConfigError, match=r"no provider 'awz'\. Did you mean 'AWS'\?"):
        provider_named("awz", known, {"aws"})
    with pytest.raises(ConfigError, match=r"'Local' is not allowed.*skyward-mcp --provider local"):
        provider_named("local", known, {"aws"})
