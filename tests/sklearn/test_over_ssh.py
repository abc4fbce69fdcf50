"""
joblib on a host that is reached over SSH.
"""

from __future__ import annotations

import os
from pathlib import Path

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed

import skyward as sky
from tests.hosts import SSHD, Host, hosts, package_settings

MIB = 1 << 20


pytestmark = pytest.mark.skipif(not Path(SSHD).exists(), reason="needs an OpenSSH server")


def received(host: Host) -> int:
    """Count the bytes that the processes of a host's SSH server have read, those of its connections among them."""
    total = 0
    for pid in host.connections():
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        total += int(next(line for line in lines if line.startswith("rchar")).split()[1])
    return total


def total(array: np.ndarray, number: int) -> float:
    """Tell what an array holds, and something more."""
    return float(array.sum()) + number


@pytest.mark.slow
@pytest.mark.parametrize("mapped", [False, True])
def test_large_array_goes_over_the_line_once(mapped: bool, tmp_path: Path) -> None:
    """Also if it is mapped from a file: the second call sends nothing of it."""
    # What cannot be compressed.
    array = np.random.default_rng(int(mapped)).random((1024, 2048))
    if mapped:
        np.save(tmp_path / "array.npy", array)
        array = np.load(tmp_path / "array.npy", mmap_mode="r")
    expected = [float(array.sum()) + i for i in range(6)]
    with hosts(1) as (made, key):
        provider = sky.SSH(
            hosts=[f"{host.address}:{host.port}" for host in made],
            key=str(key),
            known_hosts=str(key.with_name("known_hosts")),
        )
        workers = sky.Worker(concurrency=2, executor="process")
        with (
            sky.Compute(provider=provider, worker=workers, console="silent") as pool,
            sky.integrations.joblib_backend(pool),
        ):
            before = received(made[0])
            first = Parallel(n_jobs=-1, batch_size=1)(delayed(total)(array, i) for i in range(6))
            between = received(made[0])
            again = Parallel(n_jobs=-1, batch_size=1)(delayed(total)(array, i) for i in range(6))
            after = received(made[0])
    assert expected == first == again
    assert 15 * MIB < between - before < 24 * MIB
    assert after - between < MIB


@pytest.mark.packaging
@pytest.mark.timeout(300)
def test_tasks_run_on_a_host_that_has_only_python() -> None:
    """It gets the version of joblib that the client has, and its scikit-learn and numpy."""

    def task(array: np.ndarray, number: int) -> tuple[float, str, str, int]:
        import joblib
        import sklearn

        return float(array.sum()) + number, joblib.__version__, sklearn.__version__, os.getpid()

    import sklearn

    array = np.ones((1024, 1024))
    with hosts(1, env=package_settings()) as (made, key):
        names = [f"{host.address}:{host.port}" for host in made]
        provider = sky.SSH(hosts=names, key=str(key), known_hosts=str(key.with_name("known_hosts")))
        with sky.integrations.ScikitLearnPool(
            provider=provider, concurrency=2, console="silent", bootstrap_timeout=250
        ):
            found = Parallel(n_jobs=-1, batch_size=1)(delayed(task)(array, i) for i in range(8))
    assert [float(MIB + i) for i in range(8)] == [total for total, *_ in found]
    assert {(joblib.__version__, sklearn.__version__)} == {versions[1:3] for versions in found}
    assert os.getpid() not in {pid for *_, pid in found}
