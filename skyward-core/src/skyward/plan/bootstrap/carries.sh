#!/bin/sh
holds() {
  { tr '\0' '\n' <"$1" | grep -qxF -e "$2"; } 2>/dev/null
}
carries() {
  holds "/proc/$1/environ" "SKYWARD_NODE=$MARK"
}
