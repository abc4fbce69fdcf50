import pytest
from attrs import frozen

from skyward.errors import ConfigError, UsageError
from skyward.model.fields.setting import choice, lasting, nearest, positive, suggesting, text, texts, whole


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("cheapst", "cheapest"), ("FIRST", "first"), ("Cheapest", "cheapest"), ("xyz", None), (3, None)],
)
def test_the_nearest_name_is_found_whatever_its_case(wrong: object, meant: str | None) -> None:
    """What is close is offered; what is not, or is no text, is not guessed at."""
    assert meant == nearest(wrong, ["cheapest", "first"])


def test_a_wrong_word_is_answered_with_all_and_the_nearest() -> None:
    """The error names the parameter, the accepted words and the nearest of them."""
    with pytest.raises(ConfigError, match=r'mode must be "log", "rich" or True, not \'rihc\'. Did you mean "rich"\?'):
        choice("rihc", "mode", ["log", "rich"], also="True")


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None, -1])
def test_a_whole_number_is_an_int_of_at_least_the_least(value: object) -> None:
    """Bools, floats and text are no whole numbers."""
    with pytest.raises(ConfigError, match="n must be a whole number of at least 0"):
        whole(value, "n")


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan"), True, "2", None, 10**400])
def test_an_amount_is_finite_and_above_zero(value: object) -> None:
    """What cannot be an amount is refused, whatever its type."""
    with pytest.raises(ConfigError, match="vcpus must be a finite number above zero"):
        positive(value, "vcpus")


@pytest.mark.parametrize("value", [0, 0.0, -1, float("inf"), True, "60", None])
def test_a_limit_is_longer_than_nothing(value: object) -> None:
    """A limit of no time would end everything at once."""
    with pytest.raises(ConfigError, match=r"^limit must be "):
        lasting(value, "limit")


@pytest.mark.parametrize("value", ["", "  ", "a\nb", "a\0b", b"a", None, 1])
def test_text_is_one_line_that_is_not_blank(value: object) -> None:
    """Blank text, several lines and other types are refused."""
    with pytest.raises(ConfigError, match=r"^region must "):
        text(value, "region")


def test_a_list_of_text_keeps_its_order_and_loses_blanks_around() -> None:
    """Any iterable of text becomes a tuple."""
    assert ("b", "a") == texts((item for item in [" b", "a "]), "apt")


def test_a_bare_string_is_answered_with_the_list_to_write() -> None:
    """Several names in one string are taken apart in the hint."""
    with pytest.raises(ConfigError, match=r"Write pip=\['torch', 'numpy'\]\."):
        texts("torch, numpy", "pip")


def test_the_place_of_a_wrong_item_is_named() -> None:
    """The error says which item of the list it is."""
    with pytest.raises(ConfigError, match=r"pip\[1\] must be text, not 3"):
        texts(["torch", 3], "pip")


def test_a_setting_that_is_written_elsewhere_says_where() -> None:
    """Disks were once settings of providers; whatever is spelt alike is not offered."""

    @suggesting
    @frozen(kw_only=True)
    class Shed:
        country: str = ""

    for name in ("volume", "mount"):
        with pytest.raises(UsageError, match=rf"Shed has no setting '{name}'\. Disks are of the pool: volumes=\[sky"):
            Shed(**{name: "data"})
