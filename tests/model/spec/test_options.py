from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from skyward.errors import ConfigError
from skyward.model.spec.options import LogConfig, Options, Worker

MAY_BE_NONE = (
    "provision_timeout",
    "ssh_timeout",
    "ssh_retry_interval",
    "bootstrap_timeout",
    "provision_retry_delay",
    "default_compute_timeout",
    "queue_timeout",
    "call_deadline",
    "pool_deadline",
    "suspect_timeout",
)
ABOVE_ZERO = (
    "provision_timeout",
    "ssh_timeout",
    "ssh_retry_interval",
    "bootstrap_timeout",
    "default_compute_timeout",
    "reconcile_tick_interval",
    "queue_timeout",
    "call_deadline",
    "pool_deadline",
    "suspect_timeout",
    "lost_timeout",
)
AT_LEAST_ZERO = ("provision_retry_delay", "autoscale_cooldown", "autoscale_idle_timeout", "shutdown_timeout")
TIMES = (*ABOVE_ZERO, *AT_LEAST_ZERO)


def of(name: str, value: Any) -> Options:
    """Return options with one of them set."""
    arguments = {name: value}
    return Options(**arguments)


def test_no_call_is_limited_by_default() -> None:
    """Honest work may take any time; a limit is the user's to set."""
    assert Options().default_compute_timeout is None


def test_the_defaults_are_the_documented_ones() -> None:
    """What a user who sets nothing gets."""
    assert Options() == Options(
        selection="cheapest",
        worker=None,
        provision_timeout=None,
        ssh_timeout=None,
        ssh_retry_interval=None,
        bootstrap_timeout=None,
        provision_retry_delay=None,
        max_provision_attempts=None,
        max_replacement_attempts=None,
        default_compute_timeout=None,
        autoscale_cooldown=30.0,
        autoscale_idle_timeout=60.0,
        reconcile_tick_interval=15.0,
        shutdown_timeout=120.0,
        console=True,
        logging=True,
        cluster=None,
        retry_on_interruption=3,
        queue_timeout=None,
        call_deadline=None,
        pool_deadline=None,
        suspect_timeout=15.0,
        lost_timeout=60.0,
        on_event=None,
        collect_metrics=True,
        ports=(),
        budget=None,
        warm_image=False,
        health_checker=None,
    )


@pytest.mark.parametrize(
    ("written", "kept"),
    [(True, True), (False, False), ("rich", "rich"), ("spinner", "minimal"), ("quiet", "silent"), ("log", "log")],
)
def test_older_words_for_the_console_become_the_newer(written: Any, kept: Any) -> None:
    """There is one word for each way to show a pool."""
    assert kept == Options(console=written).console


@pytest.mark.parametrize(
    ("logging", "config"), [(True, LogConfig()), (False, None), (LogConfig(level="DEBUG"), LogConfig(level="DEBUG"))]
)
def test_logging_is_on_off_or_said_exactly(logging: bool | LogConfig, config: LogConfig | None) -> None:
    """True is the default configuration, False is none."""
    assert config == Options(logging=logging).log_config


def test_a_worker_is_there_whether_it_is_given_or_not() -> None:
    """Where nothing is said of workers, the defaults hold."""
    assert Worker() == Options().workers
    assert Worker(concurrency=4) == Options(worker=Worker(concurrency=4)).workers


def test_a_function_can_select() -> None:
    """Whatever can be called is left to choose, as it is."""

    def newest(providers: tuple[Any, ...], spec: Any) -> Any:
        return providers[-1]

    assert newest is Options(selection=newest).selection


@pytest.mark.parametrize("name", MAY_BE_NONE)
def test_a_limit_may_be_left_open(name: str) -> None:
    """None leaves it to whatever else decides."""
    assert getattr(of(name, None), name) is None


@given(st.sampled_from(TIMES), st.floats(min_value=0.001, max_value=1e9))
def test_a_time_is_kept(name: str, seconds: float) -> None:
    """Every finite time above zero is one."""
    assert seconds == getattr(of(name, seconds), name)


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "60", True])
def test_what_is_no_time_is_refused(name: str, value: Any) -> None:
    """Times are finite numbers of seconds, not negative, and the error names the option."""
    with pytest.raises(ConfigError, match=f"^{name} must be a .*number of seconds"):
        of(name, value)


@pytest.mark.parametrize("name", ABOVE_ZERO)
def test_no_time_is_no_limit(name: str) -> None:
    """A limit or an interval of nothing would never let anything happen."""
    with pytest.raises(ConfigError, match=f"^{name} must be more than 0 seconds, not 0"):
        of(name, 0)


@pytest.mark.parametrize("name", AT_LEAST_ZERO)
def test_a_wait_may_be_nothing(name: str) -> None:
    """Not to wait at all makes sense."""
    assert 0 == getattr(of(name, 0), name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"selection": "cheapst"}, 'selection must be "cheapest", "first", "available" or a function.*"cheapest"'),
        ({"selection": None}, "selection must be"),
        ({"console": "minmal"}, 'console must be "rich", .* or True or False, not .*Did you mean "minimal"'),
        ({"console": None}, "console must be"),
        ({"worker": 4}, r"worker must be a sky.Worker, not 4. Write worker=sky.Worker\(concurrency=4\)"),
        ({"worker": Worker}, "worker must be a sky.Worker"),
        ({"logging": "DEBUG"}, r"logging must be True, .*Write logging=sky.LogConfig\(level='DEBUG'\)"),
        ({"logging": None}, "logging must be True, False or a sky.LogConfig, not None"),
        ({"max_provision_attempts": 0}, "max_provision_attempts must be a whole number of at least 1, not 0"),
        ({"max_replacement_attempts": 0}, "max_replacement_attempts must be a whole number of at least 1, not 0"),
        ({"retry_on_interruption": -1}, "retry_on_interruption must be a whole number of at least 0, not -1"),
        ({"retry_on_interruption": None}, "retry_on_interruption must be a whole number"),
        ({"on_event": "print"}, "on_event must be a function that takes an event, not 'print'"),
    ],
)
def test_what_no_option_takes_is_refused(arguments: dict[str, Any], message: str) -> None:
    """Each error names the parameter, the value, and what is accepted."""
    with pytest.raises(ConfigError, match=message):
        Options(**arguments)


def test_changed_options_are_checked_again() -> None:
    """`attrs.evolve` runs every check."""
    with pytest.raises(ConfigError, match="shutdown_timeout must be"):
        attrs.evolve(Options(), shutdown_timeout=-1)


@pytest.mark.parametrize("cluster", [0, "yes", 1.0])
def test_nodes_are_joined_or_not(cluster: Any) -> None:
    """True, False, or nothing is said of it."""
    assert [None, True, False] == [Options(cluster=said).cluster for said in (None, True, False)]
    with pytest.raises(ConfigError, match="cluster must be True or False"):
        Options(cluster=cluster)
