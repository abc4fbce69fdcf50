#!/bin/sh
i=0 seconds=@SECONDS@
for one in @VOLUMES@; do
  serial=${one%%:*} rest=${one#*:}
  letter=${rest%%:*} where=${rest#*:}
  # A Nitro machine sees a volume over NVMe, under any name; its serial number is the volume's id without the hyphen.
  while :; do
    disk=$(lsblk -dnpo NAME,SERIAL | sed -n "s/  *$serial *\$//p")
    for each in "$disk" "/dev/sd$letter" "/dev/xvd$letter"; do [ -e "$each" ] && break; done
    if [ -e "$each" ] || [ "$i" -ge "$seconds" ]; then break; fi
    i=$((i + 1))
    sleep 1
  done
  if mountpoint -q "$where"; then continue; fi
  made=
  @MAKE@
  uuid=
  for part in "$each" "${each}p1" "${each}1"; do
    uuid=$(blkid -po value -s UUID "$part" 2>/dev/null) && [ -n "$uuid" ] && break
  done
  options=@OPTIONS@
  # Not even the journal is replayed where several machines read.
  case "$options $(blkid -po value -s TYPE "$part" 2>/dev/null)" in
    "ro ext"*) options=ro,noload ;;
    "ro xfs") options=ro,norecovery ;;
  esac
  if [ -z "$uuid" ]; then
    echo "skyward: no filesystem was found to be mounted at $where" >&2
  elif mkdir -p "$where" && mount -o "$options" "UUID=$uuid" "$where"; then
    # The login user is made later in the boot.
    [ -z "$made" ] || chmod 1777 "$where"
  else
    rmdir "$where" || :
  fi
done
