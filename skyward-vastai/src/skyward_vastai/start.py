"""What a container does when it starts: it lets the pool in, and ends itself if no client comes."""

from __future__ import annotations

import shlex
from math import ceil

from skyward.provider import END_COMMAND

__all__ = ["END_COMMAND", "LONGEST", "onstart"]

LONGEST = 4048
"""Characters of the longest script that Vast.ai takes."""

LEAST_DEADLINE = 300.0
"""Seconds that a container waits at least for a client to make a node of it; `ttl` may be shorter than a boot."""

# The container's key is a variable of its first process and of the script, but of no SSH session. What Vast.ai wrote of
# keys may end without a newline.
_START = r"""
umask 077
h=${HOME:-/root}
mkdir -p "$h/.ssh" "$h/.skyward"
printf '\n%s\n' @LOGIN@ >>"$h/.ssh/authorized_keys"
touch "$h/.no_auto_tmux"
cat >"$h/.skyward/own" <<OWN
key='$CONTAINER_API_KEY'
id='${CONTAINER_ID:-${VAST_CONTAINERLABEL#C.}}'
OWN
cat >"$h/.skyward/end" <<'END'
@END@
END
if ! command -v curl && ! command -v python3; then
  (apt-get update && apt-get install -y --no-install-recommends curl ca-certificates) &
fi >/dev/null 2>&1
"""

_END = r"""
. "${0%/*}/own"
first() { tr '\0' '\n' </proc/1/environ 2>/dev/null | sed -n "s/^$1=//p"; }
export key="${key:-$(first CONTAINER_API_KEY)}"
export url=@URL@/api/v0/instances/${id:-$(first CONTAINER_ID)}/
ask() {
  if command -v curl >/dev/null; then
    echo "header = \"Authorization: Bearer $key\"" |
      curl -fsS -m 30 -K - -X DELETE -H 'Content-Type: application/json' -d '{}' "$url"
  else
    python3 -c 'import os, urllib.request as r
h = {"Authorization": "Bearer " + os.environ["key"], "Content-Type": "application/json"}
print(r.urlopen(r.Request(os.environ["url"], b"{}", h, method="DELETE"), timeout=30).read().decode())'
  fi
}
i=0
until ask 2>/dev/null | grep -q '"success": *true'; do
  i=$((i + 1))
  [ "$i" -lt 60 ] || exit 1
  sleep 20
done
"""

# Until a node's own watchdog is there, nothing else would end a container whose client died.
_DEADLINE = r"""
(
  i=0
  while [ "$i" -lt @SECONDS@ ]; do sleep @STEP@; i=$((i + @STEP@)); done
  for w in "${SKYWARD_CACHE:-${XDG_CACHE_HOME:-$h/.cache}/skyward}"/nodes/*/lease; do [ -e "$w" ] && exit 0; done
  exec sh "$h/.skyward/end"
) >/dev/null 2>&1 </dev/null &
"""


def onstart(login: str, url: str, ttl: float | None) -> str:
    """
    Write the script that a container runs when it starts.

    Args:
        login: The public key that is let in until Vast.ai writes its own list; the account's own keys are not touched.
        url: Where the API is.
        ttl: Seconds without a client that the pool allows; 0 or None never ends it.

    >>> script = onstart("ssh-ed25519 AAAA", "https://console.vast.ai", 600)
    >>> len(script) <= LONGEST, ".no_auto_tmux" in script
    (True, True)
    """
    end = _END.strip().replace("@URL@", shlex.quote(url))
    text = _START.strip().replace("@LOGIN@", shlex.quote(login)).replace("@END@", end)
    if ttl:
        seconds = ceil(max(ttl, LEAST_DEADLINE))
        text += "\n" + _DEADLINE.strip().replace("@SECONDS@", str(seconds)).replace("@STEP@", str(min(5, seconds)))
    assert len(text) < LONGEST
    return f"{text}\n"
