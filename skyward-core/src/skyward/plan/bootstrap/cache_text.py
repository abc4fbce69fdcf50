"""Skyward's cache on a machine, as shell text: its entries, a check of its permissions, and its removal."""

from __future__ import annotations

__all__ = ["CACHE", "CLEAN", "ENTRIES", "MAKE", "UNSAFE"]

CACHE = "${SKYWARD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyward}"
"""Path of the cache, as the shell expands it."""

ENTRIES = ("environments", "locks", "nodes", "offers", "python", "runtime", "tools")
"""The directories in it; `mig.json` besides, which is a plugin's."""

MAKE = rf"""
make_entries() {{
  # Entries that were there before are not listed, because they may be the user's own.
  if [ ! -e "$1" ]; then mkdir -p "$1" && echo . >>"$1/.skyward"; fi
  for entry in {" ".join(ENTRIES)}; do
    if mkdir "$1/$entry" 2>/dev/null && ! grep -qxF -e "$entry" "$1/.skyward" 2>/dev/null; then
      echo "$entry" >>"$1/.skyward"
    fi
  done
}}
"""
"""A function that makes the cache and its directories, and lists in `.skyward` what it made; for a umask of 077."""

UNSAFE = r"""
open_to_others() {
  # Reads `ls -ldn`, and prints what others could change. In a directory on the way that has the sticky bit,
  # such as /tmp, an entry can be replaced by its owner only.
  while read -r mode links uid gid size month day time name; do
    case $uid in
      "$ME" | 0 | "$TOP") ;;
      *) echo "$name belongs to user $uid"; continue ;;
    esac
    case $1$mode in wayl* | way?????????[tT]*) continue ;; esac
    case $mode in
      l*) echo "$name is a link" ;;
      ????????w*) echo "$name can be written by other users" ;;
      ?????w*) case $gid in 0 | "$OWN") ;; *) echo "$name can be written by other users" ;; esac ;;
    esac
  done
}
unsafe() (
  # Prints which other users could change the cache or replace it; nothing if none could.
  ME=$(id -u) OWN=none TOP=$(ls -ldn / | { read -r mode links uid rest; echo "$uid"; })
  # A group of the user's name has no other members.
  if [ "$(id -gn 2>/dev/null)" = "$(id -un 2>/dev/null)" ]; then OWN=$(id -g); fi
  cache=${1%/}
  real=$(cd "$cache/" 2>/dev/null && pwd -P)
  for path in "$cache" "$real"; do
    [ -n "$path" ] || continue
    step= rest=${path#/}
    set -- /
    while [ "$rest" != "${rest#*/}" ]; do
      step=$step/${rest%%/*} rest=${rest#*/}
      set -- "$@" "$step"
    done
    if [ "$path" = "$real" ]; then ls -ldn -- "$path" 2>/dev/null | open_to_others last; else set -- "$@" "$path"; fi
    ls -ldn -- "$@" 2>/dev/null | open_to_others way
  done
  [ -n "$real" ] || exit 0
  set --
  for entry in @ENTRIES@; do set -- "$@" "$real/$entry"; done
  ls -ldn -- "$@" "$real"/runtime/* "$real"/environments/* "$real"/tools/bin "$real"/tools/bin/* 2>/dev/null |
    open_to_others last
)
""".replace("@ENTRIES@", " ".join(ENTRIES))
"""A function that looks at the owner and the mode of what is entered, imported from or run."""

CLEAN = (
    UNSAFE
    + rf"""
cache="{CACHE}"
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
[ -d "$cache" ] || exit 0
problem=$(unsafe "$cache" | sed -n 1p)
if [ -n "$problem" ]; then echo "nothing was removed, because $problem" >&2; exit 1; fi
cd "$cache/" || exit 1
# By default the cache has a name of ours. A directory that the user named may hold more than what we listed.
listed() {{ [ -z "${{SKYWARD_CACHE:-}}" ] || grep -qxF -e "$1" .skyward 2>/dev/null; }}
for entry in {" ".join(ENTRIES)}; do
  if ! listed "$entry"; then continue; fi
  # The last node takes this one along, and another may have been made in its place.
  if [ "$entry" = nodes ]; then
    for node in nodes/*; do
      if [ -e "$node/lease" ] || [ -e "$node/bootstrap.log" ]; then rm -rf "$node" || exit 1; fi
    done
    # Where a client waited for an agent that never called.
    rm -f nodes/*.in
    rmdir nodes 2>/dev/null || :
  else
    rm -rf "$entry" || exit 1
  fi
done
# What it holds is needed to put GPUs together again that were cut.
if [ "$(cat mig.json 2>/dev/null)" = "[]" ]; then rm -f mig.json; fi
if listed .; then ours=yes; else ours=; fi
rm -f .skyward
if [ -n "$ours" ]; then cd / && rmdir "$cache" 2>/dev/null && exit 0; fi
cd "$cache/" && ls -A | sed 's/^/kept=/'
"""
)
"""A script that removes what Skyward made, and says what else is there."""
