#!/bin/sh
# Of several, the one whose filesystem has the disk's name as its label.
# shellcheck disable=SC2046 # these are words
set -- $(lsblk -npPo NAME,FSTYPE,LABEL,MOUNTPOINT |
  sed -n 's/^NAME="\([^" ]*\)" FSTYPE="\(ext[234]\|xfs\|btrfs\)" LABEL="\(@LABELS@\)" MOUNTPOINT=""$/\1/p')
[ "$#" = 1 ] && echo "$1"
