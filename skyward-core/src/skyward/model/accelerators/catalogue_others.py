"""
The devices of AMD, AWS, Google and Intel, with their memory and the names that clouds sell them under.

A Google TPU is counted by the chip, not by the core.
"""

from __future__ import annotations

from skyward.model.accelerators.device import Device, FormFactor, Manufacturer, Spelling, Variant

__all__ = ["OTHER_DEVICES"]


def _device(
    name: str,
    manufacturer: Manufacturer,
    architecture: str,
    memory_gb: float,
    *spellings: str | Spelling,
    form: FormFactor | None = None,
    also: tuple[float, ...] = (),
) -> Device:
    """Return a device with one amount of memory, or also with others, written shortly."""
    forms = (form,) if form else ()
    made = tuple(Variant(memory_gb=amount, form_factors=forms) for amount in (memory_gb, *also))
    return Device(name=name, manufacturer=manufacturer, architecture=architecture, variants=made, spellings=spellings)


_AMD = (
    _device("MI50", "AMD", "GCN 5", 16, form="PCIe", also=(32,)),
    _device("MI100", "AMD", "CDNA", 32, form="PCIe"),
    _device("MI210", "AMD", "CDNA 2", 64, form="PCIe"),
    _device("MI250", "AMD", "CDNA 2", 128, form="OAM"),
    _device("MI250X", "AMD", "CDNA 2", 128, form="OAM"),
    _device("MI300A", "AMD", "CDNA 3", 128),
    # Virtual machines see a virtual function of the card.
    _device("MI300X", "AMD", "CDNA 3", 192, Spelling("MI300X OAM", None, "OAM"), "MI300X VF", form="OAM"),
    _device("MI308X", "AMD", "CDNA 3", 192, form="OAM"),
    _device("MI325X", "AMD", "CDNA 3", 256, form="OAM"),
    _device("MI350X", "AMD", "CDNA 4", 288, form="OAM"),
    _device("MI355X", "AMD", "CDNA 4", 288, form="OAM"),
    _device("Radeon_Pro_V520", "AMD", "RDNA", 8, form="PCIe"),
    _device("Radeon_Pro_V710", "AMD", "RDNA 3", 28, form="PCIe"),
    _device("RX_7900_XTX", "AMD", "RDNA 3", 24, "Radeon RX 7900 XTX", "Radeon 7900 XTX", "7900 XTX", form="PCIe"),
)

# AWS's interface calls the first generation by the bare name.
_AWS = (
    _device("Trainium1", "AWS", "NeuronCore-v2", 32, "Trainium", "trn1", "trn1n"),
    _device("Trainium2", "AWS", "NeuronCore-v3", 96, "trn2", "trn2u"),
    _device("Trainium3", "AWS", "NeuronCore-v4", 144, "trn3"),
    _device("Inferentia1", "AWS", "NeuronCore-v1", 8, "Inferentia", "inf1"),
    _device("Inferentia2", "AWS", "NeuronCore-v2", 32, "inf2"),
)

_GOOGLE = (
    _device("TPUv2", "Google", "TPU v2", 16, "v2"),
    _device("TPUv3", "Google", "TPU v3", 32, "v3"),
    _device("TPUv4", "Google", "TPU v4", 32, "v4"),
    _device("TPUv5e", "Google", "TPU v5e", 16, "v5e", "v5 lite", "v5litepod", "TPU v5 lite", "TPU v5litepod"),
    _device("TPUv5p", "Google", "TPU v5p", 95, "v5p"),
    _device("TPUv6e", "Google", "Trillium", 32, "v6e", "Trillium", "TPU v6 lite"),
    _device("TPUv7", "Google", "Ironwood", 192, "v7", "tpu7x", "Ironwood"),
)

_INTEL = (
    _device("Gaudi", "Intel", "Gaudi", 32, "Gaudi HL-205", "Habana Gaudi", "HL-205"),
    _device("Gaudi2", "Intel", "Gaudi 2", 96, "Gaudi 2", "Habana Gaudi2", "HL-225"),
    _device("Gaudi3", "Intel", "Gaudi 3", 128, "Gaudi 3", "HL-325"),
)

OTHER_DEVICES = (*_AMD, *_AWS, *_GOOGLE, *_INTEL)
