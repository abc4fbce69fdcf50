"""
What clouds and users write for an accelerator is read as one of the catalogue.
"""

from __future__ import annotations

import pytest

from skyward.errors import ConfigError
from skyward.model.accelerators.spelling import counted, normalise, read, slice_chips


@pytest.mark.parametrize(
    ("text", "name", "memory", "form"),
    [
        # nvidia-smi
        ("NVIDIA A100-SXM4-80GB", "A100", 80, "SXM"),
        ("NVIDIA A100-PCIE-40GB", "A100", 40, "PCIe"),
        ("NVIDIA H100 80GB HBM3", "H100", 80, "SXM"),
        ("NVIDIA H100 NVL", "H100", None, "NVL"),
        ("Tesla V100-SXM2-32GB", "V100", 32, "SXM"),
        ("NVIDIA GH200 480GB", "GH200", 96, None),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX_PRO_6000", None, None),
        # RunPod
        ("NVIDIA A100 80GB PCIe", "A100", 80, "PCIe"),
        ("NVIDIA H100 PCIe", "H100", None, "PCIe"),
        ("NVIDIA GeForce RTX 3080 Ti", "RTX_3080_Ti", None, None),
        ("NVIDIA RTX 4000 SFF Ada Generation", "RTX_4000_Ada", None, None),
        ("AMD Instinct MI300X OAM", "MI300X", None, "OAM"),
        ("Tesla V100-FHHL-16GB", "V100", 16, "PCIe"),
        ("NVIDIA B300 SXM6 AC", "B300", None, None),
        # Vast.ai
        ("RTX 4090", "RTX_4090", None, None),
        ("RTX 6000Ada", "RTX_6000_Ada", None, None),
        ("A100_SXM4", "A100", None, "SXM"),
        ("Q RTX 8000", "Quadro_RTX_8000", None, None),
        ("GTX 1080 Ti", "GTX_1080_Ti", None, None),
        # AWS
        ("A10G", "A10G", None, None),
        ("T4g", "T4G", None, None),
        ("Trainium", "Trainium1", None, None),
        ("Inferentia2", "Inferentia2", None, None),
        # Verda
        ("H200 SXM5 141GB", "H200", 141, "SXM"),
        ("8x H100 SXM5 80GB", "H100", 80, "SXM"),
        ("RTX6000 Ada 48GB", "RTX_6000_Ada", 48, None),
        # DigitalOcean and Google
        ("nvidia_h100", "H100", None, None),
        ("amd_mi325x", "MI325X", None, None),
        ("nvidia-tesla-t4", "T4", None, None),
        ("nvidia-h100-mega-80gb", "H100", 80, None),
        ("nvidia-a100-80gb", "A100", 80, None),
        ("amd_mi300x", "MI300X", None, None),
        ("nvidia_rtx6000_ada", "RTX_6000_Ada", None, None),
        # The rest of what the clouds' documents name.
        ("RTX PRO Server 6000", "RTX_PRO_6000", None, None),
        ("RTX PRO 4500", "RTX_PRO_4500", None, None),
        ("L40S", "L40S", None, None),
        ("Inferentia", "Inferentia1", None, None),
        ("NVIDIA GeForce RTX 4090", "RTX_4090", None, None),
        ("NVIDIA H200", "H200", None, None),
        ("H100 SXM", "H100", None, "SXM"),
        ("A100 SXM4", "A100", None, "SXM"),
        ("1x B200 SXM6 180GB", "B200", 180, "SXM"),
        ("A100 SXM4 40GB", "A100", 40, "SXM"),
        ("L40S 48GB", "L40S", 48, None),
        ("RTX PRO 6000 96GB", "RTX_PRO_6000", 96, None),
        ("RTX 6000 Ada", "RTX_6000_Ada", None, None),
        ("RTX A6000 48GB", "RTX_A6000", 48, None),
        ("Tesla V100 16GB", "V100", 16, None),
        ("NVIDIA_A100", "A100", None, None),
        ("1x H100 (80 GB PCIe)", "H100", 80, "PCIe"),
        ("8x H100 (80 GB SXM5)", "H100", 80, "SXM"),
    ],
)
def test_clouds_spellings_are_understood(text: str, name: str, memory: float | None, form: str | None) -> None:
    """Each cloud's name gives the device, and the memory and form factor that it states."""
    seen = read(text)
    assert seen.device is not None
    assert (name, memory, form) == (seen.device.name, seen.memory_gb, seen.form_factor)


@pytest.mark.parametrize(
    ("text", "name", "count", "memory"),
    [
        ("1V100.6V", "V100", 1, None),
        ("8V100.48V", "V100", 8, None),
        ("1A100.22V", "A100", 1, None),
        ("gpu-h100x1-80gb", "H100", 1, 80),
        ("gpu-h100x8-640gb", "H100", 8, 80),
        ("gpu-mi300x1-192gb", "MI300X", 1, 192),
        ("gpu-mi300x8-1536gb", "MI300X", 8, 192),
    ],
)
def test_names_of_machines_tell_their_accelerators(text: str, name: str, count: int, memory: float | None) -> None:
    """Verda and DigitalOcean put the accelerator and its number into the name of the machine."""
    seen = read(text)
    assert seen.device is not None
    assert (name, count, memory) == (seen.device.name, seen.count, seen.memory_gb)


@pytest.mark.parametrize("text", ["CPU.4V.16G", "s-1vcpu-1gb", "0V100.6V", "g6.xlarge", "gpu-frob9x8-640gb"])
def test_other_names_of_machines_tell_nothing(text: str) -> None:
    """A machine without accelerators, or with unknown ones, is taken for none."""
    assert read(text).device is None


def test_a_profile_is_read() -> None:
    """Drivers put the MIG profile behind the device's name."""
    assert "1g.5gb" == read("NVIDIA A100-SXM4-40GB MIG 1g.5gb").mig
    assert "1g.10gb+me" == read("A100-1g.10gb+me").mig


@pytest.mark.parametrize(
    ("text", "name", "chips"),
    [("v5p-8", "TPUv5p", 4), ("v5litepod-16", "TPUv5e", 16), ("tpu-v6e-8", "TPUv6e", 8), ("v2-8", "TPUv2", 4)],
)
def test_slices_are_read_as_google_counts_them(text: str, name: str, chips: int) -> None:
    """The number counts cores in some generations and chips in others."""
    seen = read(text)
    assert seen.device is not None
    assert (name, chips) == (seen.device.name, seen.chips)


@pytest.mark.parametrize("number", [0, 7])
def test_a_slice_is_of_whole_chips(number: int) -> None:
    """Where cores are counted, their number is even."""
    with pytest.raises(ConfigError, match=f"No slice of TPUv5p has {number} cores; a chip has two"):
        slice_chips("TPUv5p", number)


@pytest.mark.parametrize(
    ("text", "name"),
    [("NVIDIA A100-SXM4-80GB", "A100"), ("8x H100", "H100"), ("My-GPU", "My-GPU"), (" Frob 9000 ", "Frob 9000")],
)
def test_a_name_is_normalised_or_left_alone(text: str, name: str) -> None:
    """What is not known is still a name, so that custom accelerators match offers."""
    assert name == normalise(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("H100", ("H100", 1.0)),
        ("H100:8", ("H100", 8.0)),
        ("H100 : 8", ("H100", 8.0)),
        ("L4:0.5", ("L4", 0.5)),
        ("8x H100", ("H100", 8.0)),
        ("4xA100-40GB", ("A100-40GB", 4.0)),
    ],
)
def test_a_count_stands_before_or_behind(text: str, expected: tuple[str, float]) -> None:
    """Without a count one is meant."""
    assert expected == counted(text, "accelerator")


@pytest.mark.parametrize("text", ["H100:", "H100:many", "H100:8:2"])
def test_a_count_is_a_number(text: str) -> None:
    """The error shows what stands in the count's place, and how to write it."""
    with pytest.raises(ConfigError, match=r"where a count belongs. Write for example .H100:8"):
        counted(text, "accelerator")
