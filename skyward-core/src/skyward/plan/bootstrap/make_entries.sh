#!/bin/sh
make_entries() {
  # Entries that were there before are not listed, because they may be the user's own.
  if [ ! -e "$1" ]; then mkdir -p "$1" && echo . >>"$1/.skyward"; fi
  for entry in @ENTRIES@; do
    if mkdir "$1/$entry" 2>/dev/null && ! grep -qxF -e "$entry" "$1/.skyward" 2>/dev/null; then
      echo "$entry" >>"$1/.skyward"
    fi
  done
}
