#!/bin/sh
umask 077
h=${HOME:-/root}
mkdir -p "$h/.ssh" "$h/.skyward"
printf '\n%s\n' @LOGIN@ >>"$h/.ssh/authorized_keys"
touch "$h/.no_auto_tmux"
cat >"$h/.skyward/own" <<OWN
key='$CONTAINER_API_KEY'
id='${CONTAINER_ID:-${VAST_CONTAINERLABEL#C.}}'
OWN
cat >"$h/.skyward/end" <<'END'
@END@
END
if ! command -v curl && ! command -v python3; then
  (apt-get update && apt-get install -y --no-install-recommends curl ca-certificates) &
fi >/dev/null 2>&1
