#!/bin/sh
# Blank is what has no signature that is known, and nothing but zeros at its beginning: as AWS makes a volume.
code=0
blkid -p "$each" >/dev/null 2>&1 || code=$?
if [ -e "$each" ] && [ "$code" = 2 ] && [ "$(head -c 1048576 "$each" | tr -d '\0' | wc -c)" -eq 0 ]; then
  if mkfs.ext4 -q "$each" </dev/null; then made=1; fi
fi
