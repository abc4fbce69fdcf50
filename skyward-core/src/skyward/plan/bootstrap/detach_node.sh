#!/bin/sh
# The node goes on without a client, for so long, and then its watchdog ends it unless another client has claimed it.
umask 077
watched=
for process in $(likely cmdline "$node/watchdog.sh"); do
  if [ "$process" != $$ ] && holds "/proc/$process/cmdline" "$node/watchdog.sh"; then watched=yes; fi
done
[ -n "$watched" ] || { echo 'its watchdog is not there'; exit 5; }
echo @SECONDS@ >"$node/linger.new" && mv -f "$node/linger.new" "$node/linger" || exit 6
echo "detach $$ $(date +%s)" >"$node/lease" || exit 6
# A client that has claimed it, and could not go on with it, returns it so.
rm -rf "$node/claim" "$node/idle" "$node/client"
