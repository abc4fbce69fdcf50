from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward.model.fields.port import port, ports
from skyward.model.spec.options import Options
from skyward.plan.config.request import request


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ((), ()),
        (8888, ((8888, 8888),)),
        ([8888, 6006], ((8888, 8888), (6006, 6006))),
        ((8888, 9999), ((8888, 9999),)),
        ([(80, 8080)], ((80, 8080),)),
        ([[80, 8080]], ((80, 8080),)),
        ("8888", ((8888, 8888),)),
        ("8080:80", ((80, 8080),)),
        (["8080:80", 6006], ((80, 8080), (6006, 6006))),
        ([(80, 8080), (80, 8081)], ((80, 8080), (80, 8081))),
    ],
)
def test_a_port_is_written_in_several_ways(written: Any, kept: Any) -> None:
    """Numbers are the same on both sides, pairs begin with the node's, texts with the client's."""
    assert kept == ports(written) == Options(ports=written).ports
    assert kept == request(keywords={"ports": written}).options.ports


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (0, r"ports\[0\] must be a whole number of at least 1, not 0"),
        ([80, 65536], r"ports\[1\] must be a number from 1 to 65535, not 65536"),
        (True, r"ports\[0\] must be a whole number of at least 1, not True"),
        (None, r"ports must be a list of ports, not None\. Write ports=\[8888\]"),
        (8888.0, r"ports must be a list of ports, not 8888\.0"),
        ({80: 8080}, r"ports must be a list of ports, not \{80: 8080\}"),
        (b"80", r"ports must be a list of ports"),
        ("http", r'ports\[0\] must be a port or "LOCAL:REMOTE", not \'http\'\. Write "8888:80"'),
        ("1:2:3", r'must be a port or "LOCAL:REMOTE"'),
        (":80", r'must be a port or "LOCAL:REMOTE"'),
        ("", r'must be a port or "LOCAL:REMOTE"'),
        ("-1:80", r'must be a port or "LOCAL:REMOTE"'),
        ("٨٠", r'must be a port or "LOCAL:REMOTE"'),
        ("0:80", r"ports\[0\] must be a whole number of at least 1, not 0"),
        ([(80,)], r"ports\[0\] must be a pair \(remote, local\), not \(80,\)"),
        ([(80, "x")], r"ports\[0\]\[1\] must be a whole number"),
        ([80, (8080, 80)], r"ports has port 80 of this machine twice"),
    ],
)
def test_what_is_no_port_is_refused(wrong: Any, message: str) -> None:
    """The place in the list is named, and how it is written."""
    with pytest.raises(ConfigError, match=message):
        Options(ports=wrong)


def test_any_free_port_may_be_meant() -> None:
    """Where nothing has to be known before, 0 is taken."""
    assert 0 == port(0, "local_port", least=0)
    with pytest.raises(ConfigError, match="local_port must be a number from 0 to 65535"):
        port(70000, "local_port", least=0)
