"""Secrets have no place in what is stored."""

from __future__ import annotations

import pytest

import skyward as sky
from skyward.model.spec.spec import Spec
from skyward.plan.logs.hidden_values import Hidden, named_secrets, secrets_in, secrets_of


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "aws_secret_access_key", "WANDB_API_KEY", "PGPASSWORD", "SENTRY_DSN", "GH_AUTH", "SLACK_WEBHOOK"],
)
def test_a_name_says_that_it_is_a_secret(name: str) -> None:
    """Whatever its value looks like."""
    assert frozenset({"open sesame"}) == named_secrets({name: "open sesame"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SSH_KEY_FILE", "/etc/ssh/key"),
        ("MAX_TOKENS", "4096"),
        ("TOKEN_LIMIT_SIZE", "1000000000"),
        ("MODEL", "resnet50"),
        ("AUTHOR", "somebody"),
        ("DATA", "/mnt/data/v1"),
        ("HF_TOKEN", "abc"),
    ],
)
def test_what_is_no_secret_is_not_hidden(name: str, value: str) -> None:
    """It would be missing in the output."""
    assert frozenset() == secrets_in({name: value})


def test_what_looks_like_a_token_is_one() -> None:
    """Of the variables that a pool is given, also under another name."""
    assert frozenset({"ghp_0123456789abcdefABCD"}) == secrets_in({"CLONE": "ghp_0123456789abcdefABCD"})


def test_the_secrets_of_a_spec_are_found_where_they_are() -> None:
    """In the image's variables, and in the settings of whatever it is made of."""
    spec = Spec(image=sky.Image(env={"HF_TOKEN": "hf_of_the_image", "MODEL": "resnet50"}))
    assert frozenset({"hf_of_the_image"}) == secrets_of(spec)


def test_texts_are_cleared() -> None:
    """Of each secret, the longest first, and of passwords in URLs; short ones would be parts of words."""
    hidden = Hidden(["secret", "secret-and-more", "abc", "two\nlines of it"])
    assert "*** ***s abcabc" == hidden.clear("secret-and-more secrets abcabc")
    assert "lines: ***" == hidden.clear("lines: lines of it")
    assert "https://***@host" == hidden.clear("https://me:pw@host")
    assert "as it was\nlast" == Hidden(()).clear("as it was\nlast")
