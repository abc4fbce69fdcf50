#!/bin/sh
for each in @DISK@ @DISK@-part1; do
  [ -e "$each" ] && [ -n "$(blkid -o value -s TYPE "$each")" ] && echo "$each" && break
done
