#!/bin/sh
# A reboot has ended the watchdogs of nodes, and their clients may never return.
user=@USER@
if [ "$user" = root ]; then home=${HOME:-/root}; else home=$(eval echo "~$user"); fi
for watchdog in "$home"/.cache/skyward/nodes/*/watchdog.sh; do
  [ -e "$watchdog" ] || continue
  node=${watchdog%/*}
  # The number of the one before is in the file, and its successor would take that for its own successor's.
  setsid sh "$watchdog" "$node" >/dev/null 2>&1 </dev/null &
  echo $! >"$node/watchdog.pid"
done
