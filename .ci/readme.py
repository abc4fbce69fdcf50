"""
Run the first Python example of a README as a script of its own.

    python .ci/readme.py README.md

The example is written to a file first, because what a script defines travels to the nodes as it would for a user.
"""

import runpy
import sys
import tempfile
from pathlib import Path


def example(readme: Path) -> str:
    """Return the first block of Python that imports Skyward."""
    blocks = readme.read_text(encoding="utf-8").split("```python\n")[1:]
    return next(code for code in (block.split("```")[0] for block in blocks) if "import skyward" in code)


if __name__ == "__main__":
    code = example(Path(sys.argv[1]))
    print(code, end="\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "readme_example.py")
        script.write_text(code, encoding="utf-8")
        runpy.run_path(str(script), run_name="__main__")
