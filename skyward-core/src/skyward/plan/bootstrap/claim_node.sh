#!/bin/sh
# One pool takes a node that lingers, or its watchdog does, and then the machine ends.
umask 077
[ -e "$node/linger" ] || exit 3
mkdir "$node/claim" 2>/dev/null || exit 4
# From now on the machine ends when the new pool has not made a node of it in time.
echo @SECONDS@ >"$node/linger.new" && mv -f "$node/linger.new" "$node/linger" || exit 6
echo "claim $$ $(date +%s)" >"$node/lease" || exit 6
: >"$node/claim/taken"
