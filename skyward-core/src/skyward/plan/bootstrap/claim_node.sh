#!/bin/sh
# One pool takes a node that lingers, or its watchdog does, and then the machine ends.
umask 077
SILENT=@SILENT@
[ -e "$node/linger" ] || exit 3
# A client that is connected, and was heard a moment ago, has the node; one that was killed is noticed soon.
tries=20
while [ -e "$node/client" ] && [ "$tries" -gt 0 ]; do
  tries=$((tries - 1))
  sleep 0.1 2>/dev/null || sleep 1
done
if [ -e "$node/client" ]; then
  heard=$(stat -c %Y "$node/lease" 2>/dev/null || stat -f %m "$node/lease" 2>/dev/null || echo 0)
  [ $(($(date +%s) - heard)) -gt "$SILENT" ] || exit 4
fi
mkdir "$node/claim" 2>/dev/null || exit 4
# From now on the machine ends when the new pool has not made a node of it in time.
echo @SECONDS@ >"$node/linger.new" && mv -f "$node/linger.new" "$node/linger" || exit 6
echo "claim $$ $(date +%s)" >"$node/lease" || exit 6
: >"$node/claim/taken"
