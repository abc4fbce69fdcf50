#!/bin/sh
# As which device a machine will see it is not known before.
# shellcheck disable=SC2046 # these are words
set -- $(lsblk -npPo NAME,FSTYPE,MOUNTPOINT |
  sed -n 's/^NAME="\([^" ]*\)" FSTYPE="\(ext[234]\|xfs\|btrfs\)" MOUNTPOINT=""$/\1/p')
[ "$#" = 1 ] && echo "$1"
