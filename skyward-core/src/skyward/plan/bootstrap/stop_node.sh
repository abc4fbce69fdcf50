#!/bin/sh
name=@NAME@
node="${SKYWARD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyward}/nodes/$name"
pause() { sleep 0.05 2>/dev/null || sleep 1; }
holds() { tr '\0' '\n' <"$1" 2>/dev/null | grep -qxF -e "$2"; }
# Files in /proc that hold a text. The grep of busybox looks no further than the first NUL; asking each takes longer.
those() {
    if printf 'a\0b' | grep -qF b; then
        LC_ALL=C grep -lF -e "$2" /proc/[0-9]*/"$1" 2>/dev/null
    else
        ls -d /proc/[0-9]*/"$1" 2>/dev/null
    fi
}
tries=@TRIES@
pid=$(cat "$node/agent.pid" 2>/dev/null)
while [ -n "$pid" ] && alive "$pid" && [ "$tries" -gt 0 ]; do
    tries=$((tries - 1))
    pause
done
if [ ! -d /proc/self ] && [ -n "$pid" ]; then kill -9 "-$pid" "$pid" 2>/dev/null; fi
round=0 unseen=0
# One that is just about to become another program has no environment for a moment, so it is looked for twice.
while [ "$round" -lt 40 ] && [ "$unseen" -lt 2 ]; do
    [ "$round" = 0 ] || pause
    round=$((round + 1)) unseen=$((unseen + 1))
    for file in $(those environ "SKYWARD_NODE=$name"); do
        # A mark goes to the end of its variable, or node 1 would take node 10 with it.
        if holds "$file" "SKYWARD_NODE=$name"; then
            process=${file#/proc/}
            kill -9 "${process%/environ}" 2>/dev/null && unseen=0
        fi
    done
done
