"""What the test cloud sells: kinds of GPUs and of processors, and where."""

from __future__ import annotations

from typing import Any

from tests.clouds.emulator import Answer, Request

LEVELS = ("NONE", "LOW", "MEDIUM", "HIGH")

# id, name, manufacturer, memory, price and most in the Secure Cloud, the same in the Community Cloud, where.
_GPUS: tuple[tuple[str, str, str, int, float, int, float, int, tuple[str, ...]], ...] = (
    ("NVIDIA GeForce RTX 4090", "RTX 4090", "NVIDIA", 24, 0.69, 8, 0.34, 4, ("US-KS-2", "EU-RO-1")),
    ("NVIDIA A100-SXM4-80GB", "A100 SXM", "NVIDIA", 80, 1.89, 8, 1.39, 8, ("US-KS-2", "EU-RO-1", "CA-MTL-3")),
    ("NVIDIA H100 80GB HBM3", "H100 SXM", "NVIDIA", 80, 2.99, 8, 0.0, 0, ("US-KS-2",)),
    ("NVIDIA L40S", "L40S", "NVIDIA", 48, 0.86, 8, 0.79, 2, ("US-KS-2", "OC-AU-1")),
    ("AMD Instinct MI300X OAM", "MI300X", "AMD", 192, 2.69, 8, 0.0, 0, ("EU-RO-1",)),
)

# id, its country, and whether it has the network between all data centres.
DATA_CENTERS = {
    "US-KS-2": ("US", "NORTH_AMERICA", True),
    "CA-MTL-3": ("CA", "NORTH_AMERICA", False),
    "EU-RO-1": ("RO", "EUROPE", True),
    "OC-AU-1": ("AU", "OCEANIA", False),
}

# id, name, group, most vCPUs, GB for each, price for each, GB of disk for each.
_CPUS = (
    ("cpu3c", "Compute-Optimized", "Gen 3", 32, 2.0, 0.03, 10),
    ("cpu5c", "Compute-Optimized", "Gen 5", 32, 2.0, 0.035, 15),
    ("cpu5g", "General Purpose", "Gen 5", 16, 4.0, 0.04, 10),
)
CUDA = ("12.4", "12.8")


class Catalogue:
    """
    Answer what is sold.

    `stock` holds how many GPUs of a kind and cloud, or vCPUs of a kind, are left, where that is less than there can be.
    """

    def __init__(self) -> None:
        self.stock: dict[str, int] = {}

    def left(self, gpu: str, cloud: str) -> int:
        """Return how many GPUs of a kind one machine can give now."""
        most: dict[str, int] = {row[0]: row[5] if cloud == "SECURE" else row[7] for row in _GPUS}
        return min(most.get(gpu, 0), self.stock.get(f"{gpu}/{cloud}", 99))

    def places(self, gpu: str) -> tuple[str, ...]:
        """Return the data centres that have a kind of GPU."""
        return next((row[8] for row in _GPUS if row[0] == gpu), ())

    def price(self, gpu: str, cloud: str) -> float:
        """Return what an hour of one GPU costs."""
        return next(row[4] if cloud == "SECURE" else row[6] for row in _GPUS if row[0] == gpu)

    def reported(self, gpu: dict[str, Any]) -> list[str]:
        """Return what NVIDIA's driver says of a pod's GPUs."""
        listed = [f"{row[0]}, {row[3] * 1024}" for row in _GPUS if row[0] == gpu["id"] and row[2] == "NVIDIA"]
        return listed * int(gpu.get("count", 1))

    def cpu(self, name: str) -> tuple[int, float, float] | None:
        """Return the most vCPUs, the memory of each and its price; None if there is no such flavour."""
        return next((row[3:6] for row in _CPUS if row[0] == name), None)

    def cpu_refusal(self, asked: dict[str, Any], disk: int) -> str:
        """Say why a machine without GPUs cannot be rented so; nothing if it can."""
        flavour = next((row for row in _CPUS if row[0] == asked["id"]), None)
        vcpus = asked["vcpuCount"]
        if flavour is None or vcpus & (vcpus - 1) or vcpus > flavour[3]:
            return "this CPU flavor cannot be deployed so"
        # §Learned: 10 GB a vCPU, 15 of cpu5c
        if disk > vcpus * flavour[6]:
            return f"disk {disk} exceeds the maximum of {vcpus * flavour[6]} GB for {flavour[0]} with {vcpus} vCPUs"
        return ""

    def gpus(self, request: Request) -> Answer:
        """List kinds of GPUs, as reference/runpod.md §2 says."""
        query = request.query
        if refused := _refused(query, {"count", "cloud", "countryCodes", "cudaVersions", "minCudaVersion"}):
            return refused
        countries = query.get("countryCodes", "")
        rows = [self._gpu(row, query) for row in _GPUS]
        if countries:
            # A kind without a data centre there drops out entirely, as the OpenAPI document says of countryCodes.
            rows = [row for row in rows if row.get("dataCenters")]
        return Answer({"gpus": rows})

    def _gpu(self, row: Any, query: dict[str, str]) -> dict[str, Any]:
        name, short, maker, memory, secure, most, community, most_community, places = row
        found = {
            "id": name,
            "name": short,
            "pool": None,
            "manufacturer": maker,
            "memory": memory,
            "secure": most > 0,
            "community": most_community > 0,
            "price": {"secure": secure, "community": community},
            "maxCount": {"secure": most, "community": most_community},
        }
        if "include" in query:
            cloud, count = query.get("cloud", "SECURE"), int(query.get("count", "1"))
            countries = {code for code in query.get("countryCodes", "").split(",") if code}
            level = "HIGH" if self.left(name, cloud) >= count else "NONE"
            here = [place for place in places if not countries or DATA_CENTERS[place][0] in countries]
            found["availability"] = level if here else "NONE"
            if level != "NONE" and here:
                found["dataCenters"] = [{"id": place, "name": place, "availability": level} for place in here]
            if maker == "NVIDIA":
                found["cudaVersions"] = [{"version": version, "available": level != "NONE"} for version in CUDA]
        return found

    def cpus(self, request: Request) -> Answer:
        """List kinds of processors, as the OpenAPI document says of listCpuTypes."""
        query = request.query
        if refused := _refused(query, {"vcpuCount"}):
            return refused
        # What is left depends on how many vCPUs one machine is to have.
        vcpus = int(query.get("vcpuCount", "2"))
        if vcpus & (vcpus - 1):
            return problem(400, "vcpuCount must be a power of two")
        rows = []
        for name, title, group, most, memory, price, _ in _CPUS:
            row: dict[str, Any] = {
                "id": name,
                "name": title,
                "group": group,
                "vcpu": {"min": 2, "max": most},
                "ramGbPerVcpu": memory,
                "price": {"securePerVcpu": price, "serverlessPerVcpu": price},
            }
            if "include" in query:
                row["availability"] = "HIGH" if vcpus <= min(most, self.stock.get(name, 99)) else "NONE"
                if row["availability"] != "NONE":
                    row["dataCenters"] = [{"id": "EU-RO-1", "name": "EU-RO-1", "availability": "HIGH"}]
            rows.append(row)
        return Answer({"cpus": rows})

    def data_centers(self, request: Request) -> Answer:
        """List places, as reference/runpod.md §2 says."""
        wanted = request.query.get("globalNetwork")
        rows = [
            {
                "id": name,
                "name": name,
                "region": region,
                "globalNetwork": reach,
                "networkVolumeTypes": ["STANDARD"],
                "compliance": [],
            }
            for name, (_, region, reach) in DATA_CENTERS.items()
            if wanted is None or reach is (wanted == "true")
        ]
        return Answer({"dataCenters": rows})


def _refused(query: dict[str, str], only_with_include: set[str]) -> Answer | None:
    """Refuse questions that break a rule across parameters, as reference/runpod.md §2 says."""
    if ("include" in query) != ("product" in query):
        return problem(400, "include=AVAILABILITY and product must be given together")
    if "include" not in query and (wrong := only_with_include & query.keys()):
        return problem(400, f"{', '.join(sorted(wrong))} is valid only with include=AVAILABILITY")
    if "cudaVersions" in query and "minCudaVersion" in query:
        return problem(400, "cudaVersions and minCudaVersion are mutually exclusive")
    if any(len(code) != 2 or not code.isupper() for code in query.get("countryCodes", "AA").split(",")):
        return problem(422, "Request validation failed.", ["countryCodes: not ISO 3166-1 alpha-2"])
    return None


_TITLES = {400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found"}
_TITLES |= {409: "Conflict", 422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error"}


def problem(status: int, detail: str, errors: list[str] | None = None) -> Answer:
    """Make an error, as reference/runpod.md §6 says."""
    body: dict[str, Any] = {"title": _TITLES[status], "status": status, "detail": detail}
    return Answer({**body, "errors": errors} if errors else body, status, {"Content-Type": "application/problem+json"})
