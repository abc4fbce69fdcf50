#!/bin/sh
# The agent has taken the directory along, so the watchdog is looked for by its command.
for process in $(likely cmdline "$node/watchdog.sh"); do
  if [ "$process" != $$ ] && holds "/proc/$process/cmdline" "$node/watchdog.sh"; then
    kill -9 "-$process" "$process" 2>/dev/null
  fi
done
rm -rf "$node" "$node@CALL@"
rmdir "${node%/*}" 2>/dev/null
exit 0
