from typing import get_type_hints

from skyward.model.fields.keywords import PoolKeywords
from skyward.plan.config.keyword_checks import known_keywords


def test_every_flat_keyword_is_typed_and_no_other() -> None:
    """What is accepted at run time is what a type checker accepts."""
    assert set(known_keywords()) == set(get_type_hints(PoolKeywords))
    assert not PoolKeywords.__required_keys__
