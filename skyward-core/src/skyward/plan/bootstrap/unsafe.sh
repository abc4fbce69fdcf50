#!/bin/sh
open_to_others() {
  # Reads `ls -ldn`, and prints what others could change. In a directory on the way that has the sticky bit,
  # such as /tmp, an entry can be replaced by its owner only.
  while read -r mode links uid gid size month day time name; do
    case $uid in
      "$ME" | 0 | "$TOP") ;;
      *) echo "$name belongs to user $uid"; continue ;;
    esac
    case $1$mode in wayl* | way?????????[tT]*) continue ;; esac
    case $mode in
      l*) echo "$name is a link" ;;
      ????????w*) echo "$name can be written by other users" ;;
      ?????w*) case $gid in 0 | "$OWN") ;; *) echo "$name can be written by other users" ;; esac ;;
    esac
  done
}
unsafe() (
  # Prints which other users could change the cache or replace it; nothing if none could.
  ME=$(id -u) OWN=none TOP=$(ls -ldn / | { read -r mode links uid rest; echo "$uid"; })
  # A group of the user's name has no other members.
  if [ "$(id -gn 2>/dev/null)" = "$(id -un 2>/dev/null)" ]; then OWN=$(id -g); fi
  cache=${1%/}
  real=$(cd "$cache/" 2>/dev/null && pwd -P)
  for path in "$cache" "$real"; do
    [ -n "$path" ] || continue
    step= rest=${path#/}
    set -- /
    while [ "$rest" != "${rest#*/}" ]; do
      step=$step/${rest%%/*} rest=${rest#*/}
      set -- "$@" "$step"
    done
    if [ "$path" = "$real" ]; then ls -ldn -- "$path" 2>/dev/null | open_to_others last; else set -- "$@" "$path"; fi
    ls -ldn -- "$@" 2>/dev/null | open_to_others way
  done
  [ -n "$real" ] || exit 0
  set --
  for entry in @ENTRIES@; do set -- "$@" "$real/$entry"; done
  ls -ldn -- "$@" "$real"/runtime/* "$real"/environments/* "$real"/tools/bin "$real"/tools/bin/* 2>/dev/null |
    open_to_others last
)
