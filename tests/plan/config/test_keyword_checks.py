"""Each keyword can be checked by itself, whatever the others are."""

from __future__ import annotations

import pytest

from skyward.errors import ConfigError
from skyward.plan.config.keyword_checks import ALIASES, check_keyword, known_keywords


@pytest.mark.parametrize("keyword", sorted({*known_keywords()} - {"provider", "plugins", "image", "env"}))
def test_a_value_that_no_keyword_takes_is_refused(keyword: str) -> None:
    """By the word that was written, also where it stands for another."""
    with pytest.raises(ConfigError) as caught:
        check_keyword(keyword, object())
    assert ALIASES.get(keyword, keyword).split("_")[0] in str(caught.value) or keyword in str(caught.value)


def test_several_providers_are_checked_one_by_one() -> None:
    """As `sky.Compute` takes them."""
    check_keyword("provider", [object(), object()])
    with pytest.raises(ConfigError, match="provider must be a provider"):
        check_keyword("provider", [object(), "AWS"])
