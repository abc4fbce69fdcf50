#!/bin/sh
MARK=@NAME@
node="${SKYWARD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyward}/nodes/$MARK"
# What ends it from now on is its client's silence, and not the lease of a node that would go on without one.
rm -f "$node/linger"
pid=$(cat "$node/agent.pid" 2>/dev/null)
tries=@TRIES@
while [ -n "$pid" ] && alive "$pid" && [ "$tries" -gt 0 ]; do
  tries=$((tries - 1))
  pause
done
if [ ! -d /proc/self ] && [ -n "$pid" ]; then kill -9 "-$pid" "$pid" 2>/dev/null; fi
end_marked
