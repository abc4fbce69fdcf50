"""
Choose whose lines are shown, and catch what a block prints.
"""

import sys

import skyward as sky

lines: list[str] = []


@sky.stdout(only="head")
@sky.function
def head_alone() -> None:
    print("head", sky.instance_info().node)


@sky.stdout(only=lambda i: i.node == 1)
@sky.function
def second_alone() -> None:
    print("second", sky.instance_info().node)


@sky.stderr(only="head")
@sky.function
def warnings_of_the_head() -> None:
    print("warning", sky.instance_info().node, file=sys.stderr)


@sky.silent
@sky.function
def nobody() -> None:
    print("nothing of this")


captured: list[str] = []
with sky.redirect_output(captured.append):
    print("captured")

with sky.Compute(provider=sky.Local(), nodes=2, on_event=None) as pool:
    pool.on(sky.Log, lambda event: lines.append(event.line))
    for task in (head_alone, second_alone, warnings_of_the_head, nobody):
        task() @ pool

print(f"{sorted(lines)} | {[text.strip() for text in captured if text.strip()]}")
