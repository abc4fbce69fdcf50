"""
Describe what nodes hold: Python, packages, variables, and the files of your own.
"""

import os
import sys
import tempfile
from pathlib import Path

import skyward as sky

python = "{}.{}".format(*sys.version_info[:2])
image = sky.Image(
    python=python,
    pip=["torch", "numpy"],
    apt=["ffmpeg", "libsndfile1"],
    env={"KERAS_BACKEND": "jax"},
)
same = sky.Image(python=python, pip=["torch", "numpy"], apt=["ffmpeg", "libsndfile1"], env={"KERAS_BACKEND": "torch"})
script = image.bootstrap(ttl=0)

full = sky.Image(
    pip=["torch", "torchvision"],
    pip_extra_index_url="https://download.pytorch.org/whl/cpu",
    pip_indexes=[sky.PipIndex(url="https://download.pytorch.org/whl/cu121", packages=["torch", "torchvision"])],
    apt=["git"],
    env={"HF_HOME": "/data/hf"},
    shell_vars={"CORES": "nproc"},
    skyward_source="auto",
    metrics=None,
    bootstrap_timeout=300,
)

# Images of containers belong to the providers that start machines from them.
base = sky.containers.cuda("12.9", variant="devel", ubuntu="24.04")
others = [
    sky.containers.ubuntu("24.04"),
    sky.containers.pytorch("2.8", cuda="12.8"),
    sky.containers.runpod_pytorch("2.8"),
    sky.containers.DockerImage.of("ghcr.io/lab/train:3", cuda="12.8", ubuntu="22.04"),
]
described = [
    sky.ComputePool(provider=sky.AWS(), image=image),
    sky.ComputePool(provider=sky.RunPod(container_image=base), accelerator=sky.accelerators.A100()),
    sky.ComputePool(provider=sky.VastAI(docker_image=others[0]), accelerator=sky.accelerators.A100()),
]
assert sky.Image() == sky.DEFAULT_IMAGE
assert all(isinstance(one, sky.DockerImage) for one in (base, *others))


@sky.function
def look_around() -> tuple[str, float]:
    import settings  # what ./src holds is there

    return os.environ["HF_HOME"], settings.RATE


here = Path.cwd()
with tempfile.TemporaryDirectory() as project:
    os.chdir(project)
    Path("src").mkdir()
    Path("src/settings.py").write_text("RATE = 0.5\n")
    taken_along = sky.Image(env={"HF_HOME": "/data/hf"}, includes=["./src"], excludes=["*.ckpt"])
    with sky.Compute(provider=sky.Local(), image=taken_along, env={"RUN": "7"}) as pool:
        models, rate = look_around() >> pool
    os.chdir(here)

print(
    f"hash of {len(image.content_hash())} characters, equal if packages are: "
    f"{image.content_hash() == same.content_hash()} | installs ffmpeg: {'ffmpeg' in script} | {models}, rate {rate}"
)
