#!/bin/sh
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
code=0 seconds=@SECONDS@
for where in @FOLDERS@; do
  [ -d "$where" ] || continue
  if ! sync -f "$where"; then
    echo "$where could not be flushed" >&2
    code=1
    continue
  fi
  mountpoint -q "$where" || continue
  i=0
  until said=$(as_root umount "$where" 2>&1); do
    case "$said" in
      # The folder of a container is mounted from outside of it.
      *permitted* | *"ermission denied"* | *superuser*) break ;;
    esac
    i=$((i + 1))
    if [ "$i" -ge "$seconds" ]; then
      echo "$where could not be unmounted: $said" >&2
      code=1
      break
    fi
    sleep 1
  done
done
exit "$code"
