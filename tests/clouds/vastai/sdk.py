"""
What the official SDK does with a running emulator; run by an interpreter that has it and nothing of ours.

    python sdk.py URL KEY PUBLIC_KEY DIRECTORY

It prints what it saw, as JSON.
"""

from __future__ import annotations

import json
import sys
import time

from vastai import VastAI  # type: ignore[import-not-found,unused-ignore]  # in an environment of its own

PACE = 1.1
"""Seconds between two calls of one kind: Vast.ai's rate limit, which its SDK does not wait for."""


def main(url: str, key: str, public: str, directory: str) -> None:
    """Search, rent with volume 7 in that directory, list, label and destroy."""
    vast = VastAI(api_key=key, server_url=url, raw=True)
    seen = {"user": vast.show_user()}
    seen["offers"] = vast.search_offers(query="gpu_name=RTX_4090 num_gpus=1 geolocation=US", order="dph_total")
    onstart = f"mkdir -p $HOME/.ssh; echo '{public}' >>$HOME/.ssh/authorized_keys"
    seen["made"] = vast.create_instance(
        id=seen["offers"][0]["id"],
        image="nvidia/cuda:12.8.1-devel-ubuntu24.04",
        disk=16,
        label="by-hand",
        onstart_cmd=onstart,
        ssh=True,
        direct=True,
        link_volume=7,
        mount_path=directory,
    )
    number, deadline = seen["made"]["new_contract"], time.monotonic() + 30
    while True:
        time.sleep(2 * PACE)
        seen["shown"] = vast.show_instance(id=number)
        if seen["shown"]["actual_status"] == "running" or time.monotonic() > deadline:
            break
    vast.label_instance(id=number, label="by-hand-again")
    seen["key"] = vast.create_ssh_key(ssh_key=f"{public} of the account")
    time.sleep(PACE)
    seen["attached"] = vast.attach_ssh(instance_id=number, ssh_key=public)
    time.sleep(PACE)
    seen["keys"] = vast.show_ssh_keys()
    seen["listed"] = vast.show_instances()
    seen["destroyed"] = vast.destroy_instance(id=number)
    time.sleep(PACE)
    seen["left"] = vast.show_instances()
    seen["volumes"] = vast.show_volumes()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
