#!/bin/sh
# The agent has taken the directory along, so the watchdog is looked for by its command.
for file in $(those cmdline "$node/watchdog.sh"); do
    process=${file#/proc/}
    process=${process%/cmdline}
    if [ "$process" != $$ ] && holds "$file" "$node/watchdog.sh"; then kill -9 "-$process" "$process" 2>/dev/null; fi
done
rm -rf "$node" "$node@CALL@"
rmdir "${node%/*}" 2>/dev/null
exit 0
