#!/bin/sh
# Ends this node when its client has been silent for too long. Its own variables don't carry the node's mark.
TTL=@TTL@ LIFE=@LIFE@ PAUSE=@PAUSE@ ENDINGS=@ENDINGS@
NODE=$1
MARK=${NODE##*/}
SELF=$(cat "$0" 2>/dev/null)
cd /
trap '' HUP INT QUIT TERM
{ echo -1000 >"/proc/$$/oom_score_adj"; } 2>/dev/null
clock() {
  # The time of day may be set while we look at it.
  if { read -r uptime rest </proc/uptime; } 2>/dev/null; then NOW=${uptime%%.*}; else NOW=$(date +%s); fi
}
look() {
  # A node that lingers for the next pool has its own time; whether it is claimed is looked at before that.
  CLAIMED= SPAN= LEASE=
  if [ -e "$NODE/claim/taken" ]; then CLAIMED=yes; fi
  { read -r SPAN <"$NODE/linger"; } 2>/dev/null
  # After a reboot this is started again from its file, which the agent has taken along.
  if [ -n "$SPAN" ] && [ ! -e "$NODE/watchdog.sh" ]; then
    { printf '%s\n' "$SELF" >"$NODE/watchdog.new" && mv "$NODE/watchdog.new" "$NODE/watchdog.sh"; } 2>/dev/null
  fi
  SPAN=${SPAN:-$TTL}
  # Nothing is left to do on a node that was detached, unless a client has just claimed it.
  if [ -e "$NODE/idle" ] && [ -z "$CLAIMED" ]; then SPAN=1; fi
  { while IFS= read -r line || [ -n "$line" ]; do LEASE=$LEASE$line/; done <"$NODE/lease"; } 2>/dev/null
}
ours() {
  # A pool that claims the node at this moment keeps it.
  [ ! -e "$NODE/linger" ] || [ -n "$CLAIMED" ] || mkdir "$NODE/claim" 2>/dev/null
}
end_machine() {
  @END@
}
finish() {
  agent=$(cat "$NODE/agent.pid" 2>/dev/null)
  case $agent in
    '' | *[!0-9]*) ;;
    # A process that has taken over the number is none of ours.
    *) if carries "$agent" || [ ! -e "/proc/$agent" ]; then kill -9 "-$agent" "$agent" 2>/dev/null; fi ;;
  esac
  end_marked
  trap - HUP INT QUIT TERM
  round=0
  until end_machine || [ "$round" -ge "$ENDINGS" ]; do
    round=$((round + 1))
    if [ "$round" -lt 12 ]; then sleep 5; else sleep 60; fi
  done
  rm -rf "$NODE" "$NODE.in"
  exit 0
}
clock
BEGAN=$NOW
CHANGED=$NOW
look
SEEN=$LEASE
# What removes the directory may be dead before a rented machine is terminated.
while @THERE@; do
  # Another one may have been started in our place.
  OWNER=
  { read -r OWNER <"$NODE/watchdog.pid"; } 2>/dev/null
  case $OWNER in '' | "$$") ;; *) exit 0 ;; esac
  look
  clock
  if [ "$LEASE" != "$SEEN" ]; then
    SEEN=$LEASE
    CHANGED=$NOW
  fi
  if [ "$SPAN" -gt 0 ] && [ $((NOW - CHANGED)) -gt "$SPAN" ] && ours; then finish; fi
  if [ "$LIFE" -gt 0 ] && [ $((NOW - BEGAN)) -gt "$LIFE" ]; then finish; fi
  sleep "$PAUSE"
done
