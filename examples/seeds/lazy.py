"""
Decorate a function: calling it gives a value that stands for the call, and a pool runs it.
"""

import cloudpickle

import skyward as sky


# The code of before, and one line more.
@sky.compute
def train(config: dict[str, float]) -> float:
    weight = 0.0
    for _ in range(int(config["steps"])):
        weight += config["rate"] * (1.0 - weight)
    return round(weight, 4)


@sky.compute
def area(width: int, height: int) -> int:
    return width * height


pending: sky.PendingCompute[int] = area(6, 7)
print(type(pending))

try:
    pending.kwargs = {}
except AttributeError:
    frozen = True

# Tests and debuggers have the plain function.
here = train.local({"steps": 3, "rate": 0.5})
# What a script defines is pickled by value; of an imported module, plain pickle does as well.
again = cloudpickle.loads(cloudpickle.dumps(pending))

with sky.ComputePool(provider=sky.Local()) as pool:
    there = train({"steps": 3, "rate": 0.5}) >> pool
    product = again >> pool

print(f"frozen: {frozen} | here and there: {here} {there} | the pickled call: {product}")
