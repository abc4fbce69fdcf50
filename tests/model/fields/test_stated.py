"""What values say of themselves."""

from __future__ import annotations

import skyward as sky
from skyward.model.fields.stated import digest_of


def test_equal_values_have_one_digest() -> None:
    """However they were written."""
    assert digest_of(sky.Spec(memory_gb="32GB", nodes=(2, 8))) == digest_of(
        sky.Spec(memory_gb=32, nodes=sky.Nodes(2, max=8))
    )


def test_another_image_has_another_digest() -> None:
    """Also where only the text of a variable differs."""
    one, other = (sky.Spec(image=sky.Image(env={"TOKEN": text})) for text in ("a", "b"))
    assert digest_of(one) != digest_of(other)


def test_a_secret_is_not_in_it() -> None:
    """A digest is all that is written down."""
    assert "hunter2" not in digest_of(sky.Image(env={"TOKEN": "hunter2"}))
