from pathlib import Path
from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward.model.fields.log_config import LogConfig


@pytest.mark.parametrize(
    ("rotation", "size_bytes", "age_s"),
    [
        ("50 MB", 50_000_000, None),
        ("1.5GB", 1_500_000_000, None),
        ("1 MiB", 1 << 20, None),
        ("100 kb", 100_000, None),
        ("1 day", None, 86_400.0),
        ("2 weeks", None, 1_209_600.0),
        ("30 minutes", None, 1_800.0),
    ],
)
def test_a_file_ends_at_a_size_or_an_age(rotation: str, size_bytes: int | None, age_s: float | None) -> None:
    """The unit says which of the two it is."""
    config = LogConfig(rotation=rotation)

    assert (size_bytes, age_s) == (config.rotation_bytes, config.rotation_s)


def test_levels_are_kept_in_capitals() -> None:
    """However it is written, a level is one word."""
    assert LogConfig(level="DEBUG") == LogConfig(level="debug")


def test_a_path_is_kept_as_text() -> None:
    """A path of pathlib is as good as text."""
    assert "/tmp/sky.log" == LogConfig(file=Path("/tmp/sky.log")).file


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": "WARN"}, 'level must be "TRACE", .* not \'WARN\'. Did you mean "WARNING"'),
        ({"level": 10}, "level must be"),
        ({"file": ""}, "file must not be blank"),
        ({"file": None}, "file must be text, not None"),
        ({"console": "yes"}, "console must be True or False, not 'yes'"),
        ({"rotation": "50 parrots"}, "rotation must be a size or a time above zero, not '50 parrots'. .*\"50 MB\""),
        ({"rotation": "0 MB"}, "rotation must be a size or a time above zero"),
        ({"rotation": 50}, "rotation must be a size or a time"),
        ({"retention": -1}, "retention must be a whole number of at least 0, not -1"),
    ],
)
def test_what_no_field_takes_is_refused(arguments: dict[str, Any], message: str) -> None:
    """Each error names the parameter, the value, and what is accepted."""
    with pytest.raises(ConfigError, match=message):
        LogConfig(**arguments)
