#!/bin/sh
# The processes of the node whose mark is $MARK.
pause() {
  sleep 0.05 2>/dev/null || sleep 1
}
holds() {
  { tr '\0' '\n' <"$1" | grep -qxF -e "$2"; } 2>/dev/null
}
carries() {
  holds "/proc/$1/environ" "SKYWARD_NODE=$MARK"
}
alive() {
  kill -0 "$1" 2>/dev/null || return 1
  # In a container what has ended may stay uncollected.
  case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in Z* | X*) return 1 ;; esac
}
likely() {
  # Numbers of processes of which a file in /proc may hold a text. The grep of busybox looks no further than the first
  # NUL; asking every process takes longer.
  if printf 'a\0b' | grep -qF b; then
    LC_ALL=C grep -lF -e "$2" /proc/[0-9]*/"$1" 2>/dev/null
  else
    ls -d /proc/[0-9]*/"$1" 2>/dev/null
  fi | cut -d/ -f3
}
end_marked() {
  # One that is just about to become another program has no environment for a moment, so it is looked for twice.
  round=0 unseen=0
  while [ "$round" -lt 40 ] && [ "$unseen" -lt 2 ]; do
    [ "$round" = 0 ] || pause
    round=$((round + 1)) unseen=$((unseen + 1))
    for process in $(likely environ "SKYWARD_NODE=$MARK"); do
      # A mark goes to the end of its variable, or node 1 would take node 10 with it.
      if [ "$process" != $$ ] && carries "$process"; then kill -9 "$process" 2>/dev/null && unseen=0; fi
    done
  done
}
