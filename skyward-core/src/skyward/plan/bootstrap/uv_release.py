"""The release of uv that is installed where there is none, and how it is known: by its version and its hashes."""

from __future__ import annotations

__all__ = ["ARCHIVES", "REQUIREMENT", "VERSION"]

VERSION = "0.9.5"
"""The release. A Python that it installs is one of those whose hashes are in it."""

ARCHIVES = {
    "x86_64": "3665ffb6c429c31ad6c778ac0489b7746e691acf025cf530b3510b2f9b1660ff",
    "aarch64": "42b9b83933a289fe9c0e48f4973dee49ce0dfb95e19ea0b525ca0dbca3bce71f",
}
"""The SHA-256 of its archives for Linux with musl, which run with every C library, by machine."""

_WHEELS = """
02db727beb94a2137508cee5a785c3465d150954ca9abdff2d8157c76dea163e
0316493044035098666d6e99c14bd61b352555d9717d57269f4ce531855330fa
133e2614e1ff3b34c2606595d8ae55710473ebb7516bfa5708afc00315730cd1
21452ece590ddb90e869a478ca4c2ba70be180ec0d6716985ee727b9394c8aa5
3a4ecbfdcbd3dae4190428874762c791e05d2c97ff2872bf6c0a30ed5c4ea9ca
3eb31c9896dc2c88f6a9f1d693be2409fe2fc2e3d90827956e4341c2b2171289
48a12390421f91af8a8993cf15c38297c0bb121936046286e287975b2fbf1789
48a3542835d37882ff57d1ff91b757085525d98756712fa61cf9941d3dda8ebf
5bb4996329ba47e7e775baba4a47e85092aa491d708a66e63b564e9b306bfb7e
6452eb6257e37e1ebd97430b5f5e10419da2c3ca35b4086540ec4163b4b2f25c
6507bbbcd788553ec4ad5a96fa19364dc0f58b023e31d79868773559a83ec181
6a046c2e833169bf26f461286aab58a2ba8d48ed2220bfcf119dcfaf87163116
8603bb902e578463c50c3ddd4ee376ba4172ccdf4979787f8948747d1bb0e18b
922cd784cce36bbdc7754b590d28c276698c85791c18cd4c6a7e917db4480440
9fc13b4b943d19adac52d7dcd2159e96ab2e837ac49a79e20714ed25f1f1b7f9
c465f2e342cab908849b8ce83e14fd4cf75f5bed55802d0acf1399f9d02f92d9
c966e3a4fe4de3b0a6279d0a835c79f9cddbb3693f52d140910cbbed177c5742
d8835d2c034421ac2235fb658bb4f669a301a0f1eb00a8430148dd8461b65641
f8eb34ebebac4b45334ce7082cca99293b71fb32b164651f1727c8a640e5b387
"""

REQUIREMENT = f"uv=={VERSION} " + " ".join(f"--hash=sha256:{digest}" for digest in _WHEELS.split())
"""The release as a line of a requirements file, with hashes: no index can substitute another."""
