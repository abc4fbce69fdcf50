"""
TensorFlow on hosts that are reached over SSH and have only Python.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import skyward as sky
from tests.frameworks.tensorflow_work import train_alone, train_together
from tests.hosts import SSHD, hosts, package_settings
from tests.ssh.conftest import Site


@pytest.mark.everything
@pytest.mark.timeout(400)
@pytest.mark.skipif(not Path(SSHD).exists(), reason="needs an OpenSSH server")
def test_training_on_two_hosts_gives_what_one_process_gives() -> None:
    """With what the plugin installs, which this client lacks; losses and weights agree to 1e-9."""
    with hosts(2, env=package_settings()) as (made, key):
        pool = sky.Compute(
            provider=Site(made, key).provider(),
            nodes=2,
            image=sky.Image(pip=["scikit-learn"]),
            plugins=[sky.plugins.tensorflow()],
            console="silent",
            logging=False,
            bootstrap_timeout=300,
        )
        with pool:
            losses, weights = train_alone() >> pool
            assert losses[-1] < losses[0] / 2
            for their_losses, theirs in train_together() @ pool:
                np.testing.assert_allclose(their_losses, losses, rtol=0, atol=1e-9)
                for expected, found in zip(weights, theirs, strict=True):
                    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
