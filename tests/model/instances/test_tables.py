"""Offers and receipts in a notebook."""

from __future__ import annotations

from skyward.model.instances.cost_report import NodeReceipt, Receipt
from skyward.model.instances.offer import Offer
from skyward.model.instances.offer_table import OfferList

OFFER = Offer(
    provider="aws",
    instance_type="p4d.24xlarge",
    region="us-east-1",
    accelerator_name="A100",
    accelerator_count=8,
    vcpus=96,
    memory_gb=1152,
    spot_price=9.5,
    on_demand_price=32.77,
)


def test_an_offer_is_a_row() -> None:
    """What it is, where, and both prices."""
    html = OFFER._repr_html_()
    for said in ("aws", "p4d.24xlarge", "us-east-1", "8 × A100", "96", "1152 GB", "$9.50/h", "$32.77/h"):
        assert said in html


def test_offers_are_a_table_and_a_list() -> None:
    """The text of the list is that of any other."""
    offers = OfferList([OFFER] * 60)
    assert 51 == offers._repr_html_().count("<tr")
    assert "+ 10 more" in offers._repr_html_()
    assert repr(list(offers)) == repr(offers)
    assert "no offers" in OfferList()._repr_html_()


def test_a_receipt_says_what_each_machine_did() -> None:
    """And what may still be billed."""
    node = NodeReceipt(
        node=0,
        instance_id="<i>",
        provider="aws",
        instance_type="p4d.24xlarge",
        spot=True,
        hourly_rate=9.5,
        seconds=100,
        billed_seconds=120,
        booting=10,
        preparing=20,
        computing=60,
        idle=5,
        ending=5,
        cost=0.32,
        ended=False,
    )
    html = Receipt(nodes=(node,), total_cost=0.32, seconds=100, savings=0.5)._repr_html_()
    for said in ("$0.32", "1:40", "$0.50 less than on demand", "2:00", "1:00", "20.0 s", "spot", "may still be billed"):
        assert said in html
    assert "&lt;i&gt;" in html
    assert "<i>" not in html
