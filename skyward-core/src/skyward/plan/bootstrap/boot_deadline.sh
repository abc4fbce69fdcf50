#!/bin/sh
# Until a node's own watchdog is there, nothing else would end a machine whose client died.
user=@USER@ seconds=@SECONDS@ step=@STEP@
if [ "$user" = root ]; then home=${HOME:-/root}; else home=$(eval echo "~$user"); fi
(
  i=0
  while [ "$i" -lt "$seconds" ]; do sleep "$step"; i=$((i + step)); done
  for lease in "$home"/.cache/skyward/nodes/*/lease; do [ -e "$lease" ] && exit 0; done
  exec @END@
) >/dev/null 2>&1 </dev/null &
