from datetime import datetime

from attrs import Factory, field, frozen

from skyward import provider as kit
from skyward.provider import hookimpl, number, text, whole

KEY = kit.Credential(provider="heron", title="Heron", parameter="api_key", variables=("HERON_API_KEY",), hint="Ask.")
ERRORS = {kit.CapacityError: "sold_out", kit.QuotaError: "limit_reached"}
MEANING = kit.meaning_by([kit.ErrorRow(kind=kind, code=(code,)) for kind, code in ERRORS.items()])
URL = {"base_url": "https://api.heron.example", "url_variable": "HERON_URL"}
SERVICE = kit.Service(provider="heron", title="Heron", meaning=MEANING, **URL)
PENDING, RUNNING, ENDING, ENDED = kit.InstanceState
STATES = {"booting": PENDING, "active": RUNNING, "failed": ENDING, "deleting": ENDING, "reclaimed": ENDED}
LEAST_DEADLINE, LONGEST_LABEL = 300.0, 48
PRICES = {"on_demand_price": "hourly", "spot_price": "spot_hourly"}


class Account(kit.KeyAccount):
    def __init__(self, api_key):
        super().__init__(SERVICE, KEY, api_key)
        self.inventory = kit.Inventory({"machines": self.rows}, identity=self.identity, hold=1.0)

    async def pages(self, path, key, read):
        after = lambda answer: answer.get("next_cursor") and {"cursor": text(answer, "next_cursor")}
        return await self.api.pages(path, lambda answer: [read(row) for row in kit.listed(answer, key)], after)

    async def rows(self):
        rows = await self.pages("/v1/machines", "machines", lambda row: (text(row, "id"), row))
        return {name: row for name, row in rows if tags_of(row)}

    async def instances(self, cluster):
        rows = (await self.inventory.rows(pool_id=cluster.pool_id)).values()
        return [instance_of(row, cluster.key) for row in rows if tags_of(row).pool_id == cluster.pool_id]

    async def owned(self):
        return [instance_of(row) for row in (await self.inventory.rows(within=0.0)).values()]

    async def terminate(self, ids):
        async def left(names):
            return {name for name, row in (await self.rows()).items() if row["status"] != "reclaimed"}

        delete = lambda name: self.api.delete(f"/v1/machines/{name}", also=(404,))
        await kit.end_for_good(ids, end=delete, left=left, provider="heron", hint="Type: heron delete {ids}")
        self.inventory.forget(ids)


@frozen(kw_only=True)
class Heron(kit.AccountHooks):
    api_key: str | None = field(default=None, repr=False)
    _account = field(default=Factory(lambda self: Account(self.api_key), takes_self=True), init=False, eq=False)

    @hookimpl
    def skyward_facts(self):
        more = {"spot": True, "regions": ("fjord", "delta"), "end_command": ("shutdown", "-h", "now")}
        return kit.ProviderFacts(name="heron", ends_own_bill="running", billing_granularity_s=1.0, **more)

    @hookimpl
    async def skyward_preflight(self):
        await self._account.api.get("/v1/machines", params={"limit": 1})

    @hookimpl
    async def skyward_offers(self):
        return [offer for offers in await self._account.pages("/v1/sizes", "sizes", offers_of) for offer in offers]

    @hookimpl
    async def skyward_launch(self, request):
        async def create(nodes):
            with self._account.inventory.creating(request):
                made = await self._account.api.post("/v1/machines", json=body_of(request, nodes[0]), once=False)
            self._account.inventory.add(made["machine"]["id"], made["machine"], request)
            return {nodes[0]: made["machine"]}

        rows = await kit.CallBatch(create).rented(request.nodes, before={})
        return [instance_of(row, request.cluster.key) for row in rows.values()]

    @hookimpl
    async def skyward_renew(self, ids, expires_at):
        labels = {"labels": {"skyward-expires": str(int(expires_at))}}
        for name in ids:
            await self._account.api.patch(f"/v1/machines/{name}", json=labels, also=(404,))


def offers_of(row):
    size = {"instance_type": text(row, "name"), "vcpus": whole(row, "vcpus"), "memory_gb": row["memory_mib"] / 1024}
    if gpu := row["gpu"]:
        size |= {"accelerator_name": gpu["model"], "accelerator_count": gpu["count"]}
    for region, place in row["regions"].items():
        prices = {name: number(place, key, written=True) for name, key in PRICES.items()}
        yield kit.Offer(provider="heron", region=region, available=place["left"] > 0, **size, **prices)


def body_of(request, node):
    offer, ttl, tags = request.cluster.offer, request.cluster.spec.ttl, request.tags_of(node).to_strings()
    labels = {name.replace(":", "-"): kit.fitting(tags[name], LONGEST_LABEL, kit.escaped) for name in tags}
    script = kit.boot_deadline("root", max(ttl, LEAST_DEADLINE), "shutdown -h now") if ttl else ""
    body = {"size": offer.instance_type, "region": offer.region, "spot": request.spot, "labels": labels}
    return {**body, "ssh_key": request.cluster.key.public, "user_data": script, "request_id": f"{request.token}-{node}"}


def tags_of(row):
    return kit.Tags.from_strings({name.replace("-", ":", 1): kit.unescaped(v) for name, v in row["labels"].items()})


def instance_of(row, key=None):
    fact, tags, prints = kit.facts("heron", row["id"]), tags_of(row), tuple(row["host_key_sha256"])
    door = {"host": row["ip"], "port": row["ssh_port"], "user": "root", "private_key": key and key.private}
    more = {"node": tags.node or 0, "tags": tags, "instance_type": row["size"], "reason": row["error"]}
    more |= {name: row[name] for name in ("id", "region", "spot", "ip", "private_ip")}
    return kit.Instance(
        provider="heron",
        state=kit.life(row["status"], STATES, provider="heron", instance=row["id"]),
        address=kit.SSHAddress(**door, fingerprints=prints) if row["ip"] and prints else None,
        hourly_rate=fact("hourly", lambda: number(row, "hourly", written=True)),
        launched_at=fact("created_at", lambda: datetime.fromisoformat(row["created_at"]).timestamp()),
        **more,
    )
