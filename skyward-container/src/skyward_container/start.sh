#!/bin/sh
# The container's first process is its SSH server; nothing but the pool's key is let in.
set -eu
mkdir -p /run/sshd /run/skyward
chmod 700 /run/skyward
printf '%s\n' "$SKYWARD_LOGIN_KEY" >/run/skyward/authorized_keys
umask 077
printf '%s\n' "$SKYWARD_HOST_KEY" >/run/skyward/host_key
unset SKYWARD_LOGIN_KEY SKYWARD_HOST_KEY
sshd=$(command -v sshd || echo /usr/sbin/sshd)
[ -x "$sshd" ] || { echo 'this image has no OpenSSH server' >&2; exit 96; }
exec "$sshd" -D -e -h /run/skyward/host_key -o AuthorizedKeysFile=/run/skyward/authorized_keys -o StrictModes=no \
    -o PermitRootLogin=prohibit-password -o PasswordAuthentication=no -o UsePAM=no -o MaxSessions=100
