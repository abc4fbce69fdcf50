"""What the test cloud's machines cost: known list prices, and made-up ones that follow a machine's size."""

from __future__ import annotations

import json
import math
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES

LISTED = {"g4dn.xlarge": 0.526, "g5.xlarge": 1.006, "g6.xlarge": 0.805, "g6e.xlarge": 1.861, "p5.48xlarge": 55.04}
PAGE = 100
TYPES = sorted(INSTANCE_TYPES)

dearer: dict[str, float] = {}
"""By how much types cost more than usual."""


def on_demand(name: str) -> float:
    """Return what an hour costs on demand."""
    return _usual(name) * dearer.get(name, 1.0)


def _usual(name: str) -> float:
    if name in LISTED:
        return LISTED[name]
    row = INSTANCE_TYPES[name]
    gpus = sum(gpu.get("MemoryInfo", {}).get("SizeInMiB", 0) * gpu["Count"] for gpu in _gpus(row))
    size = row["VCpuInfo"]["DefaultVCpus"] * 0.02 + row["MemoryInfo"]["SizeInMiB"] / 1024 * 0.005
    return round(size + gpus / 1024 * 0.03, 4)


def spot(name: str, zone: str) -> float:
    """Return what an hour costs on the spot market of a zone: less in later zones."""
    return round(on_demand(name) * (0.4 - 0.01 * (ord(zone[-1]) - ord("a"))), 6)


def products(request: dict[str, Any]) -> dict[str, Any]:
    """Answer GetProducts, a page at a time."""
    wanted = {each["Field"]: each["Value"] for each in request.get("Filters", ()) if each["Type"] == "TERM_MATCH"}
    names = [wanted["instanceType"]] if "instanceType" in wanted else TYPES
    found = [name for name in names if name in INSTANCE_TYPES and _matches(name, wanted)]
    start, page = int(request.get("NextToken") or 0), min(PAGE, request.get("MaxResults", PAGE))
    answer: dict[str, Any] = {
        "FormatVersion": "aws_v1",
        "PriceList": [json.dumps(_product(name, wanted["regionCode"])) for name in found[start : start + page]],
    }
    if start + page < len(found):
        answer["NextToken"] = str(start + page)
    return answer


def spot_rows(region: str, names: list[str], zones: list[str]) -> list[dict[str, str]]:
    """Answer DescribeSpotPriceHistory: one row for each type and zone, with the price in force."""
    return [
        {
            "instanceType": row["InstanceType"],
            "productDescription": "Linux/UNIX",
            "spotPrice": f"{spot(row['InstanceType'], row['Location']):.6f}",
            "availabilityZone": row["Location"],
            "timestamp": "2026-01-02T15:04:05.000Z",
        }
        for row in INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, ())
        if (not names or row["InstanceType"] in names)
        and (not zones or row["Location"] in zones)
        and "spot" in INSTANCE_TYPES.get(row["InstanceType"], {}).get("SupportedUsageClasses", ())
    ]


def sold_in(region: str, name: str, zone: str | None) -> bool:
    """Say whether a type is sold in a zone."""
    rows = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, ())
    return any(row["InstanceType"] == name and zone in (None, row["Location"]) for row in rows)


def _gpus(row: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = row.get("GpuInfo", {}).get("Gpus", [])
    return found


def _attributes(name: str, region: str) -> dict[str, str]:
    return {
        "instanceType": name,
        "regionCode": region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "licenseModel": "No License required",
        "marketoption": "OnDemand",
    }


def _matches(name: str, wanted: dict[str, str]) -> bool:
    own = _attributes(name, wanted["regionCode"])
    return all(own.get(field) == value for field, value in wanted.items())


def _product(name: str, region: str) -> dict[str, Any]:
    # A price of nothing stands beside the real one, as the true service has it.
    prices = {f"{name}.free": "0.0000000000", f"{name}.hour": f"{on_demand(name):.10f}"}
    assert math.isfinite(on_demand(name))
    return {
        "product": {"productFamily": "Compute Instance", "attributes": _attributes(name, region), "sku": name},
        "serviceCode": "AmazonEC2",
        "terms": {
            "OnDemand": {
                f"{sku}.term": {
                    "priceDimensions": {sku: {"unit": "Hrs", "pricePerUnit": {"USD": price}}},
                    "sku": name,
                }
                for sku, price in prices.items()
            }
        },
    }
