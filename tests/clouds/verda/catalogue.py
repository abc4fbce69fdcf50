"""What the Verda test cloud sells: types, places, images, and where what is left."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

LOCATIONS = [  # reference/verda.md §2
    {"code": "FIN-01", "name": "Finland 1", "country_code": "FI"},
    {"code": "FIN-02", "name": "Finland 2", "country_code": "FI"},
    {"code": "FIN-03", "name": "Finland 3", "country_code": "FI"},
    {"code": "ICE-01", "name": "Iceland 1", "country_code": "IS"},
]

_NEW = ("ubuntu-24.04", "ubuntu-24.04-cuda-13.0-open", "ubuntu-24.04-cuda-13.0-open-docker")
_OLD = ("ubuntu-22.04", "ubuntu-22.04-cuda-12.4", "ubuntu-22.04-cuda-12.4-docker")


def _kind(
    name: str, gpus: int, model: str, gpu_gb: int, cores: int, memory: int, price: str, spot: str, images: Any = _NEW
) -> dict[str, Any]:
    """Describe a type with every field that the official SDK asks for."""
    gpu = f"{gpus}x {model} {gpu_gb}GB" if gpus else ""
    return {
        "id": f"{zlib.crc32(name.encode()):08x}-0000-4000-8000-000000000000",
        "instance_type": name,
        # Strings, for the whole machine.
        "price_per_hour": price,
        "spot_price": spot,
        "dynamic_price": price,
        "max_dynamic_price": price,
        "description": f"Dedicated {model or 'CPU'} instance",
        "cpu": {"description": f"{cores} CPU", "number_of_cores": cores},
        "gpu": {"description": gpu, "number_of_gpus": gpus},
        # The memory of all of them together.
        "gpu_memory": {"description": f"{gpus * gpu_gb}GB GPU RAM", "size_in_gigabytes": gpus * gpu_gb},
        "memory": {"description": f"{memory}GB RAM", "size_in_gigabytes": memory},
        "storage": {"description": "dynamic"},
        "best_for": ["Anything"],
        "model": model or "CPU Node",
        "name": model or "AMD EPYC",
        "display_name": model or "CPU",
        "manufacturer": "NVIDIA" if gpus else "AMD",
        "p2p": "",
        "currency": "usd",
        "deploy_warning": None,
        "supported_os": list(images),
    }


TYPES = [  # reference/verda.md §2
    _kind("CPU.4V.16G", 0, "", 0, 4, 16, "0.0279", "0.0098", ("ubuntu-24.04", "ubuntu-22.04")),
    _kind("CPU.8V.32G", 0, "", 0, 8, 32, "0.0558", "0.0195", ("ubuntu-24.04", "ubuntu-22.04")),
    _kind("1V100.6V", 1, "Tesla V100", 16, 6, 23, "0.1381", "0.0483", _OLD),
    _kind("8V100.48V", 8, "Tesla V100", 16, 48, 180, "1.1048", "0.3867", _OLD),
    _kind("1A6000.10V", 1, "RTX A6000", 48, 10, 60, "0.4921", "0.1722", _OLD),
    _kind("1A100.22V", 1, "A100 SXM4", 80, 22, 120, "1.2894", "0.4513"),
    _kind("8A100.176V", 8, "A100 SXM4", 80, 176, 960, "10.3152", "3.6103"),
    _kind("1A100.40S.22V", 1, "A100 SXM4", 40, 22, 120, "0.7211", "0.2524"),
    _kind("1L40S.20V", 1, "L40S", 48, 20, 60, "0.9157", "0.3205"),
    _kind("1RTX6000ADA.10V", 1, "RTX6000 Ada", 48, 10, 60, "0.8390", "0.2937"),
    _kind("1RTXPRO6000.30V", 1, "RTX PRO 6000", 96, 30, 150, "1.3900", "0.4865"),
    _kind("1H100.80S.30V", 1, "H100 SXM5", 80, 30, 120, "2.2900", "0.8015"),
    _kind("8H100.80S.176V", 8, "H100 SXM5", 80, 176, 1480, "18.3200", "6.4120"),
    _kind("1H200.141S.44V", 1, "H200 SXM5", 141, 44, 185, "2.9900", "1.0465"),
    _kind("1B200.30V", 1, "B200 SXM6", 180, 30, 184, "3.9900", "1.3965"),
]

BY_NAME = {row["instance_type"]: row for row in TYPES}

ON_DEMAND = {
    "FIN-01": ["CPU.4V.16G", "CPU.8V.32G", "1V100.6V", "8V100.48V", "1A100.22V", "1L40S.20V", "1RTX6000ADA.10V"],
    "FIN-02": ["CPU.4V.16G", "1A6000.10V", "1H100.80S.30V", "8H100.80S.176V", "1H200.141S.44V"],
    "FIN-03": ["CPU.4V.16G", "CPU.8V.32G", "1A100.40S.22V", "8A100.176V", "1RTXPRO6000.30V"],
    "ICE-01": ["CPU.4V.16G"],
}
SPOT = {
    "FIN-01": ["CPU.4V.16G", "1V100.6V", "1A100.22V"],
    "FIN-02": ["CPU.4V.16G", "1H100.80S.30V"],
    "FIN-03": ["CPU.4V.16G", "1A100.40S.22V", "1B200.30V"],
    "ICE-01": ["1B200.30V"],
}


def images() -> list[dict[str, Any]]:
    """List the images as `GET /images` does, each with the types that it boots on."""
    names = dict.fromkeys(itertools.chain.from_iterable(row["supported_os"] for row in TYPES))
    return [
        {
            "id": f"image-{number}",
            "image_type": name,
            "name": name.replace("-", " ").title(),
            "details": [],
            "is_default": name == "ubuntu-24.04-cuda-13.0-open-docker",
            "category": "ubuntu",
            "is_cluster": False,
        }
        for number, name in enumerate(names)
    ]


def gpus(row: dict[str, Any]) -> list[str]:
    """List a type's GPUs as `nvidia-smi` does: name, and memory in MiB."""
    count = row["gpu"]["number_of_gpus"]
    if not count:
        return []
    return [f"NVIDIA {row['model']}, {row['gpu_memory']['size_in_gigabytes'] // count * 1024}"] * count
