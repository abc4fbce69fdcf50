"""What Verda lists is translated: prices as text, memory of all GPUs together, images by type."""

from __future__ import annotations

from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward.rest import Misread
from skyward_verda.catalogue import choose_image, read_stock, to_offers

ROW: dict[str, Any] = {
    "instance_type": "8H100.80S.176V",
    "price_per_hour": "18.3200",
    "spot_price": "6.4120",
    "gpu": {"description": "8x H100 SXM5 80GB", "number_of_gpus": 8},
    "gpu_memory": {"description": "640GB GPU RAM", "size_in_gigabytes": 640},
    "cpu": {"number_of_cores": 176},
    "memory": {"size_in_gigabytes": 1480},
}
EVERYWHERE = {"FIN-01": ["8H100.80S.176V"]}


def offer(**changes: Any) -> Any:
    """Translate a type that is sold in one location in both ways."""
    [found] = to_offers([{**ROW, **changes}], EVERYWHERE, EVERYWHERE, ["FIN-01"])
    return found


def test_memory_is_that_of_one_gpu() -> None:
    """Verda tells that of all together."""
    found = offer()
    assert (8, 80.0, "H100 SXM5 80GB") == (
        found.accelerator_count,
        found.accelerator_memory_gb,
        found.accelerator_name,
    )
    assert ("H100", "SXM") == (found.accelerator.name, found.accelerator.form_factor)


@pytest.mark.parametrize(
    ("price", "read"), [("0.89", 0.89), (0.89, 0.89), (1, 1.0), (None, None), ("0", None), (0, None)]
)
def test_prices_are_text_or_numbers_or_none(price: Any, read: float | None) -> None:
    """What costs nothing is not sold."""
    assert read == offer(price_per_hour=price).on_demand_price


@pytest.mark.parametrize("price", ["", "free", "nan", "inf", "-1", True, [], {}])
def test_a_price_that_is_none_is_no_price(price: Any) -> None:
    """No code guesses what it may mean."""
    with pytest.raises(Misread, match="price_per_hour"):
        offer(price_per_hour=price)


def test_a_type_that_cannot_be_read_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """It cannot be rented, so it is left out, with a warning that shows it."""
    other = {**ROW, "instance_type": "odd", "gpu": {"number_of_gpus": 1}}
    found = to_offers([other, ROW], EVERYWHERE, {}, ["FIN-01"])
    assert ["8H100.80S.176V"] == [each.instance_type for each in found]
    assert "gpu.description" in caplog.text


def test_what_is_left_nowhere_is_told_with_its_prices() -> None:
    """And is not available; what one market has is sold in that one."""
    none, spot = to_offers([ROW], {}, EVERYWHERE, ["FIN-02", "FIN-01"])
    assert (False, 18.32, 6.412) == (none.available, none.on_demand_price, none.spot_price)
    assert (True, None, 6.412) == (spot.available, spot.on_demand_price, spot.spot_price)
    assert {"on_demand": 18.32} == dict(spot.data)


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ("1x B200 SXM6 180GB", "B200"),
        ("1x H200 SXM5 141GB", "H200"),
        ("1x A100 SXM4 40GB", "A100"),
        ("1x L40S 48GB", "L40S"),
        ("1x RTX PRO 6000 96GB", "RTX_PRO_6000"),
        ("1x RTX6000 Ada 48GB", "RTX_6000_Ada"),
        ("1x RTX 6000 Ada 48GB", "RTX_6000_Ada"),
        ("1x RTX A6000 48GB", "RTX_A6000"),
        ("1x Tesla V100 16GB", "V100"),
    ],
)
def test_gpus_are_known_in_verdas_spellings(description: str, name: str) -> None:
    """However they are written there."""
    memory = {"size_in_gigabytes": int(description.rpartition(" ")[2].removesuffix("GB"))}
    found = offer(gpu={"description": description, "number_of_gpus": 1}, gpu_memory=memory)
    assert (name, False) == (found.accelerator.name, found.accelerator.custom)


@pytest.mark.parametrize("answer", [{}, None, "[]", [{"availabilities": []}], [{"location_code": "F"}]])
def test_a_stock_that_is_none_is_no_empty_stock(answer: Any) -> None:
    """It would say that nothing is left."""
    with pytest.raises(Misread):
        read_stock(answer)


def images(*names: str) -> list[dict[str, Any]]:
    """List images."""
    return [{"id": f"id-{name}", "image_type": name, "is_default": False, "is_cluster": False} for name in names]


@pytest.mark.parametrize(
    ("names", "gpus", "chosen"),
    [
        (("ubuntu-22.04", "ubuntu-24.04"), False, "ubuntu-24.04"),
        (("ubuntu-24.04-cuda-13.0-open", "ubuntu-22.04"), False, "ubuntu-22.04"),
        (("ubuntu-24.04-cuda-12.8-open", "ubuntu-24.04-cuda-13.0-open", "ubuntu-24.04"), True, None),
        (("ubuntu-24.04-cuda-13.0-open-docker", "ubuntu-24.04-cuda-13.0-open"), True, "ubuntu-24.04-cuda-13.0-open"),
        (("ubuntu-22.04-cuda-12.4-docker",), True, "ubuntu-22.04-cuda-12.4-docker"),
        (("debian-12", "fedora-41"), True, "debian-12"),
    ],
)
def test_the_newest_image_is_chosen(names: tuple[str, ...], gpus: bool, chosen: str | None) -> None:
    """With CUDA where there are GPUs, of the newest version, and without Docker if it can be."""
    expected = chosen or "ubuntu-24.04-cuda-13.0-open"
    assert expected == choose_image(images(*names), gpus=gpus, wanted=None, subject="t")


def test_images_of_clusters_are_none_for_machines() -> None:
    """Nor is there any where all are such."""
    rows = [{**images("ubuntu-24.04")[0], "is_cluster": True}]
    with pytest.raises(ConfigError, match="lists no image for t"):
        choose_image(rows, gpus=False, wanted=None, subject="t")


def test_an_image_of_the_users_is_taken_by_name_or_id() -> None:
    """Another one is refused: it might be a disk of the user's, which we would delete."""
    rows = images("ubuntu-24.04", "ubuntu-22.04")
    for wanted in ("ubuntu-22.04", "id-ubuntu-24.04"):
        assert wanted == choose_image(rows, gpus=False, wanted=wanted, subject="t")
    with pytest.raises(ConfigError, match="There are ubuntu-22"):
        choose_image(rows, gpus=False, wanted="7d1f", subject="t")


def test_a_location_that_cannot_be_read_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """It is left out with a warning."""
    rows = [{"location_code": None, "availabilities": []}, {"location_code": "FIN-01", "availabilities": ["1V100.6V"]}]
    assert {"FIN-01": frozenset({"1V100.6V"})} == read_stock(rows)
    assert "'location_code' is not text" in caplog.text
