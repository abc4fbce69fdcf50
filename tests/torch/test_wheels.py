"""Which packages nodes get for torch, and from where."""

from __future__ import annotations

import pytest

from skyward.hookspecs import Offer
from skyward_torch.wheels import INDEX, index_of, requirements

GPU = Offer(provider="cloud", instance_type="p5", accelerator_name="H100", accelerator_count=8)
CPU = Offer(provider="cloud", instance_type="m7")


@pytest.mark.parametrize(
    ("version", "vision", "audio", "expected"),
    [
        (None, False, False, ("torch",)),
        ("2.13.0", False, False, ("torch==2.13.0",)),
        ("2.13.0", "0.28.0", True, ("torch==2.13.0", "torchvision==0.28.0", "torchaudio")),
        (None, True, False, ("torch", "torchvision")),
    ],
)
def test_packages_are_named_as_they_are_asked_for(
    version: str | None, vision: bool | str, audio: bool | str, expected: tuple[str, ...]
) -> None:
    """A version pins, and True takes whichever there is."""
    assert expected == requirements(version, vision=vision, audio=audio)


@pytest.mark.parametrize(
    ("offer", "cuda", "expected"),
    [(CPU, None, f"{INDEX}/cpu"), (GPU, None, None), (GPU, "12.8", f"{INDEX}/cu128"), (GPU, "13.0", f"{INDEX}/cu130")],
)
def test_the_index_follows_the_machine(offer: Offer, cuda: str | None, expected: str | None) -> None:
    """Nodes without accelerators get the small build; the usual index has one of CUDA."""
    assert expected == index_of(offer, cuda)
