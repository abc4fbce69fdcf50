"""
Use a package on the nodes that is not installed here. Needs a package index, the first time.
"""

import importlib.util

import skyward as sky


@sky.function
def size(count: int) -> str:
    # Imported inside: only the node has it.
    import humanize

    return str(humanize.naturalsize(count, binary=True))


print("installed here:", importlib.util.find_spec("humanize") is not None)

# The environment is made once for this image and found again by its content hash.
image = sky.Image(pip=["humanize==4.9.0"])
with sky.Compute(image=image) as pool:
    print("on the node:", size(256 << 20) >> pool)
