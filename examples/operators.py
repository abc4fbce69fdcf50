"""
Choose by the operator where a call runs: on one node, on all, beside others, or later.
"""

import skyward as sky


@sky.function
def square(x: int) -> int:
    return x * x


@sky.function
def shout(text: str) -> str:
    return text.upper()


@sky.function
def where() -> int:
    return sky.instance_info().node


@sky.pool(nodes=2)
def main() -> None:
    # Inside the decorated function, `sky` stands for its pool.
    print("one node:   ", square(3) >> sky)
    print("every node: ", where() @ sky)
    print("side by side:", (square(4) & shout("done")) >> sky)

    future = square(5) > sky
    print("later:      ", future.result())

    calls = [square(x) for x in range(6)]
    print("gathered:   ", sky.gather(*calls) >> sky)
    print("as they end:", sorted(sky.gather(*calls, stream=True, ordered=False) >> sky))

    print("here:       ", square.local(7))


with sky.Compute(nodes=2) as pool:
    print("on the head:", pool.run(where(), target="head"), "and on node 1:", pool.run(where(), target=1))

main()
