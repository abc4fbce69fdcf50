"""
Follow an unattended run: plain lines, and a log of its own.
"""

import tempfile
from pathlib import Path

import skyward as sky


@sky.function
def train() -> int:
    print("epoch 1")
    return 1


with tempfile.TemporaryDirectory() as folder:
    log = Path(folder) / "skyward.log"
    options = sky.Options(
        console="log",
        logging=sky.LogConfig(level="DEBUG", file=str(log), console=False, rotation="50 MB", retention=10),
    )
    with sky.Compute(provider=sky.Local(), options=options) as pool:
        train() >> pool
    written = log.read_text()

print("the log tells of the node:", "NodeReady" in written)
