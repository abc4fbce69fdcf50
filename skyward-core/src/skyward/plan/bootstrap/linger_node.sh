#!/bin/sh
# What stop_node.sh has ended leaves nothing but its watchdog, which ends the machine unless a pool claims it in time.
umask 077
watched=
for process in $(likely cmdline "$node/watchdog.sh"); do
  if [ "$process" != $$ ] && holds "/proc/$process/cmdline" "$node/watchdog.sh"; then watched=yes; fi
done
[ -n "$watched" ] || { echo 'its watchdog is not there'; exit 5; }
rm -rf "$node" "$node@CALL@"
mkdir -p "$node" || exit 6
# What was written to disks is on them when the machine ends.
sync >/dev/null 2>&1 </dev/null &
echo @SECONDS@ >"$node/linger" && echo "linger $$ $(date +%s)" >"$node/lease" || exit 6
