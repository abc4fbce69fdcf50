#!/bin/sh
cache="${SKYWARD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyward}"
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
[ -d "$cache" ] || exit 0
problem=$(unsafe "$cache" | sed -n 1p)
if [ -n "$problem" ]; then echo "nothing was removed, because $problem" >&2; exit 1; fi
cd "$cache/" || exit 1
# By default the cache has a name of ours. A directory that the user named may hold more than what we listed.
listed() { [ -z "${SKYWARD_CACHE:-}" ] || grep -qxF -e "$1" .skyward 2>/dev/null; }
for entry in @ENTRIES@; do
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
# What it tells is needed to put GPUs together again that were cut.
if [ "$(cat mig.json 2>/dev/null)" = "[]" ]; then rm -f mig.json; fi
if listed .; then ours=yes; else ours=; fi
rm -f .skyward
if [ -n "$ours" ]; then cd / && rmdir "$cache" 2>/dev/null && exit 0; fi
cd "$cache/" && ls -A | sed 's/^/kept=/'
