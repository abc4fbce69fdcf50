#!/bin/sh
where=@WHERE@ seconds=@SECONDS@ i=0
until disk=$(
  @FIND@
) && [ -n "$disk" ] || [ "$i" -ge "$seconds" ]; do sleep 1; i=$((i + 1)); done
if mountpoint -q "$where"; then :
elif [ -z "$disk" ]; then echo "skyward: no filesystem was found to be mounted at $where" >&2
elif mkdir -p "$where" && mount -o @OPTIONS@ "$disk" "$where"; then :
else rmdir "$where" || :
fi
