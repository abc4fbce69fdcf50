"""
NVIDIA's devices, with their memory, form factors, MIG profiles and the names that clouds sell them under.

The MIG tables follow NVIDIA's MIG user guide (supported profiles) and the configurations its mig-parted ships.
"""

from __future__ import annotations

from collections.abc import Mapping

from skyward.model.accelerators.device import Device, FormFactor, Spelling, Variant

__all__ = ["NVIDIA_DEVICES"]

_MIG_A30 = {"1g.6gb": 4, "2g.12gb": 2, "4g.24gb": 1, "1g.6gb+me": 1, "2g.12gb+me": 1}
_MIG_40 = {"1g.5gb": 7, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1, "1g.5gb+me": 1}
_MIG_80 = {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1, "1g.10gb+me": 1}
_MIG_94 = {"1g.12gb": 7, "1g.24gb": 4, "2g.24gb": 3, "3g.47gb": 2, "4g.47gb": 1, "7g.94gb": 1, "1g.12gb+me": 1}
_MIG_96 = {"1g.12gb": 7, "1g.24gb": 4, "2g.24gb": 3, "3g.48gb": 2, "4g.48gb": 1, "7g.96gb": 1, "1g.12gb+me": 1}
_MIG_141 = {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1, "1g.18gb+me": 1}
_MIG_144 = {"1g.18gb": 7, "1g.36gb": 4, "2g.36gb": 3, "3g.72gb": 2, "4g.72gb": 1, "7g.144gb": 1, "1g.18gb+me": 1}
_MIG_B200 = {"1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1, "1g.23gb+me": 1}
_MIG_B300 = {"1g.34gb": 7, "1g.67gb": 4, "2g.67gb": 3, "3g.135gb": 2, "4g.135gb": 1, "7g.269gb": 1}
# Boards with 186 GB and with 189 GB name their profiles differently.
_MIG_GB200 = {
    "1g.23gb": 7,
    "1g.24gb": 7,
    "1g.47gb": 4,
    "2g.47gb": 3,
    "3g.93gb": 2,
    "3g.95gb": 2,
    "4g.93gb": 1,
    "4g.95gb": 1,
    "7g.186gb": 1,
    "7g.189gb": 1,
}
_MIG_PRO_6000 = {
    "1g.24gb": 4,
    "2g.48gb": 2,
    "4g.96gb": 1,
    "1g.24gb+gfx": 4,
    "2g.48gb+gfx": 2,
    "4g.96gb+gfx": 1,
    "1g.24gb-me": 4,
    "2g.48gb-me": 2,
    "1g.24gb+me.all": 1,
    "2g.48gb+me.all": 1,
}


def _made(
    memory_gb: float, *forms: FormFactor, mig: Mapping[str, int] | None = None, reported: tuple[float, ...] = ()
) -> Variant:
    """Return a variant, written shortly."""
    return Variant(memory_gb=memory_gb, form_factors=forms, mig=mig or {}, reported_gb=reported)


def _device(name: str, architecture: str, made: Variant | tuple[Variant, ...], *spellings: str | Spelling) -> Device:
    """Return an NVIDIA device, written shortly."""
    variants = made if isinstance(made, tuple) else (made,)
    return Device(name=name, manufacturer="NVIDIA", architecture=architecture, variants=variants, spellings=spellings)


def _card(name: str, architecture: str, *memory_gb: float, also: tuple[str, ...] = ()) -> Device:
    """Return a desktop card, whose number alone means it too."""
    number = name.removeprefix("RTX_").removeprefix("GTX_")
    return _device(name, architecture, tuple(_made(amount) for amount in memory_gb), number, *also)


_DATA_CENTRE = (
    _device(
        "H100",
        "Hopper",
        # Some clouds sell one half of a device as a device of 40 GB.
        (_made(80, "SXM", "PCIe", mig=_MIG_80), _made(94, "NVL", "SXM", mig=_MIG_94), _made(40)),
        Spelling("H100 80GB HBM3", 80, "SXM"),
        Spelling("H100 80GB HBM2e", 80, "PCIe"),
        "H100 Mega",
    ),
    _device("H200", "Hopper", _made(141, "SXM", "NVL", mig=_MIG_141), Spelling("H200 Ultra", None, "SXM")),
    _device(
        "H20",
        "Hopper",
        (_made(96, "SXM", mig=_MIG_96), _made(141, "SXM", mig=_MIG_141)),
        Spelling("H20-3e", 141, "SXM"),
    ),
    _device("H800", "Hopper", (_made(80, "SXM", "PCIe", mig=_MIG_80), _made(94, "NVL", mig=_MIG_94))),
    _device(
        "GH200",
        "Hopper",
        (_made(96, mig=_MIG_96), _made(144, mig=_MIG_144)),
        # Drivers write how much memory the processor beside it has.
        Spelling("GH200 120GB", 96),
        Spelling("GH200 480GB", 96),
        Spelling("GH200 144G HBM3e", 144),
        "Grace Hopper",
    ),
    _device("B100", "Blackwell", _made(192, "SXM")),
    _device("B200", "Blackwell", _made(192, "SXM", mig=_MIG_B200, reported=(180, 183))),
    _device("B300", "Blackwell Ultra", _made(288, "SXM", mig=_MIG_B300, reported=(262, 269, 275)), "B300 SXM6 AC"),
    # Sold by the superchip, which holds two GPUs; drivers and some clouds count each by itself.
    _device("GB200", "Blackwell", _made(384, mig=_MIG_GB200, reported=(186, 192)), "GB200 NVL72", "Grace Blackwell"),
    _device("GB300", "Blackwell Ultra", _made(576, reported=(279, 288)), "GB300 NVL72"),
    _device(
        "A100",
        "Ampere",
        (_made(80, "SXM", "PCIe", mig=_MIG_80), _made(40, "SXM", "PCIe", mig=_MIG_40)),
        Spelling("A100X", 80, "PCIe"),
    ),
    _device(
        "A800",
        "Ampere",
        (_made(80, "SXM", "PCIe", mig=_MIG_80), _made(40, "SXM", "PCIe", mig=_MIG_40)),
        Spelling("A800 40GB Active", 40, "PCIe"),
        Spelling("A800 80GB PCIe LC", 80, "PCIe"),
    ),
    _device("A30", "Ampere", _made(24, "PCIe", mig=_MIG_A30)),
    _device("A40", "Ampere", _made(48, "PCIe", reported=(45,))),
    _device("A16", "Ampere", _made(16, "PCIe", reported=(15,))),
    _device("A10", "Ampere", _made(24, "PCIe", reported=(22,))),
    _device("A10G", "Ampere", _made(24, "PCIe", reported=(22,))),
    _device("A2", "Ampere", _made(16, "PCIe", reported=(15,))),
    _device("L4", "Ada Lovelace", _made(24, "PCIe", reported=(22,))),
    _device("L40", "Ada Lovelace", _made(48, "PCIe", reported=(45,))),
    _device("L40S", "Ada Lovelace", _made(48, "PCIe", reported=(44,))),
    _device("L20", "Ada Lovelace", _made(48, "PCIe", reported=(45,))),
    _device("L2", "Ada Lovelace", _made(24, "PCIe", reported=(22,))),
    _device("T4", "Turing", _made(16, "PCIe", reported=(15,))),
    _device("T4G", "Turing", _made(16, "PCIe", reported=(15,))),
    _device(
        "V100",
        "Volta",
        (_made(16, "SXM", "PCIe"), _made(32, "SXM", "PCIe")),
        Spelling("V100S", 32, "PCIe"),
        Spelling("V100 FHHL", 16, "PCIe"),
        Spelling("V100 DGXS", 32, "PCIe"),
    ),
    _device("P100", "Pascal", (_made(16, "SXM", "PCIe"), _made(12, "PCIe"))),
    _device("P40", "Pascal", _made(24, "PCIe", reported=(22,))),
    _device("P4", "Pascal", _made(8, "PCIe")),
    _device("M60", "Maxwell", _made(8, "PCIe")),
    _device("M40", "Maxwell", (_made(12, "PCIe"), _made(24, "PCIe"))),
    _device("K80", "Kepler", _made(12, "PCIe")),
)

_WORKSTATION = (
    _device(
        "RTX_PRO_6000",
        "Blackwell",
        _made(96, "PCIe", mig=_MIG_PRO_6000),
        "RTX PRO 6000 Blackwell",
        "RTX PRO 6000 Blackwell Server Edition",
        "RTX PRO 6000 Blackwell Workstation Edition",
        "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        "RTX PRO 6000 Max-Q",
        "RTX PRO 6000 WK",
        "RTX PRO 6000 WS",
        "RTX PRO 6000 S",
        "RTX PRO Server 6000",
    ),
    _device(
        "RTX_PRO_5000",
        "Blackwell",
        (_made(48, "PCIe", mig={"1g.24gb": 2, "2g.48gb": 1}), _made(72, "PCIe")),
        "RTX PRO 5000 Blackwell",
    ),
    _device(
        "RTX_PRO_4500",
        "Blackwell",
        _made(32, "PCIe"),
        "RTX PRO 4500 Blackwell",
        "RTX PRO 4500 Blackwell Server Edition",
    ),
    _device("RTX_PRO_4000", "Blackwell", _made(24, "PCIe"), "RTX PRO 4000 Blackwell"),
    _device("RTX_6000_Ada", "Ada Lovelace", _made(48, "PCIe"), "6000 Ada"),
    _device("RTX_5880_Ada", "Ada Lovelace", _made(48, "PCIe"), "5880 Ada"),
    _device("RTX_5000_Ada", "Ada Lovelace", _made(32, "PCIe"), "5000 Ada"),
    _device("RTX_4500_Ada", "Ada Lovelace", _made(24, "PCIe"), "4500 Ada"),
    _device("RTX_4000_Ada", "Ada Lovelace", _made(20, "PCIe"), "4000 Ada", "RTX 4000 SFF Ada", "RTX 4000 Ada SFF"),
    _device("RTX_2000_Ada", "Ada Lovelace", _made(16, "PCIe"), "2000 Ada"),
    _device("RTX_A6000", "Ampere", _made(48, "PCIe"), "A6000"),
    _device("RTX_A5500", "Ampere", _made(24, "PCIe"), "A5500"),
    _device("RTX_A5000", "Ampere", _made(24, "PCIe"), "A5000"),
    _device("RTX_A4500", "Ampere", _made(20, "PCIe"), "A4500"),
    _device("RTX_A4000", "Ampere", _made(16, "PCIe"), "A4000"),
    _device("RTX_A2000", "Ampere", (_made(12, "PCIe"), _made(6, "PCIe")), "A2000"),
    _device("Quadro_RTX_8000", "Turing", _made(48, "PCIe"), "RTX 8000", "Q RTX 8000"),
    _device("Quadro_RTX_6000", "Turing", _made(24, "PCIe"), "RTX 6000", "Q RTX 6000"),
    _device("Quadro_RTX_5000", "Turing", _made(16, "PCIe"), "RTX 5000", "Q RTX 5000"),
    _device("Quadro_RTX_4000", "Turing", _made(8, "PCIe"), "RTX 4000", "Q RTX 4000"),
    _device("Quadro_P5000", "Pascal", _made(16, "PCIe"), "P5000"),
    _device("Quadro_P4000", "Pascal", _made(8, "PCIe"), "P4000"),
)

_DESKTOP = (
    _card("RTX_5090", "Blackwell", 32),
    # Fewer cores or slower tensor cores than the card of the number alone, so that neither passes for the other.
    _device("RTX_5090_D", "Blackwell", (_made(32), _made(24)), "5090 D", Spelling("RTX 5090 D v2", 24)),
    _card("RTX_5080", "Blackwell", 16),
    _card("RTX_5070_Ti", "Blackwell", 16),
    _card("RTX_5070", "Blackwell", 12),
    _card("RTX_5060_Ti", "Blackwell", 16, 8),
    _card("RTX_5060", "Blackwell", 8),
    _card("RTX_4090", "Ada Lovelace", 24),
    _card("RTX_4090_D", "Ada Lovelace", 24),
    _card("RTX_4080_SUPER", "Ada Lovelace", 16, also=("RTX 4080S",)),
    _card("RTX_4080", "Ada Lovelace", 16),
    _card("RTX_4070_Ti_SUPER", "Ada Lovelace", 16, also=("RTX 4070S Ti",)),
    _card("RTX_4070_Ti", "Ada Lovelace", 12),
    _card("RTX_4070_SUPER", "Ada Lovelace", 12, also=("RTX 4070S",)),
    _card("RTX_4070", "Ada Lovelace", 12),
    _card("RTX_4060_Ti", "Ada Lovelace", 16, 8),
    _card("RTX_4060", "Ada Lovelace", 8),
    _card("RTX_3090_Ti", "Ampere", 24),
    _card("RTX_3090", "Ampere", 24),
    _card("RTX_3080_Ti", "Ampere", 12),
    _card("RTX_3080", "Ampere", 10, 12),
    _card("RTX_3070_Ti", "Ampere", 8),
    _card("RTX_3070", "Ampere", 8),
    _card("RTX_3060_Ti", "Ampere", 8),
    _card("RTX_3060", "Ampere", 12, 8),
    _card("RTX_2080_Ti", "Turing", 11, 22),
    _card("RTX_2080_SUPER", "Turing", 8, also=("RTX 2080S",)),
    _card("RTX_2080", "Turing", 8),
    _card("RTX_2070_SUPER", "Turing", 8, also=("RTX 2070S",)),
    _card("RTX_2070", "Turing", 8),
    _card("RTX_2060_SUPER", "Turing", 8, also=("RTX 2060S",)),
    _card("RTX_2060", "Turing", 6, 12),
    _card("GTX_1660_Ti", "Turing", 6),
    _card("GTX_1660_SUPER", "Turing", 6, also=("GTX 1660 S",)),
    _card("GTX_1660", "Turing", 6),
    _card("GTX_1080_Ti", "Pascal", 11),
    _card("GTX_1080", "Pascal", 8),
    _card("GTX_1070_Ti", "Pascal", 8),
    _card("GTX_1070", "Pascal", 8),
    _card("GTX_1060", "Pascal", 6, 3),
    _device("TITAN_RTX", "Turing", _made(24)),
    _device("TITAN_V", "Volta", _made(12)),
    _device("TITAN_Xp", "Pascal", _made(12)),
)

NVIDIA_DEVICES = (*_DATA_CENTRE, *_WORKSTATION, *_DESKTOP)
