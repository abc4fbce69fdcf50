#!/bin/sh
# Made by Skyward; it is removed with its pool.
umask 077
mkdir -p /root/.ssh
printf '%s\n' '@LOGIN@' >>/root/.ssh/authorized_keys
# What makes a machine's keys at its first boot may come before or after this: it knows nothing of a key of that name.
cat >/etc/ssh/skyward_host_key <<'END'
@PRIVATE@
END
line='HostKey /etc/ssh/skyward_host_key'
if grep -qi '^ *include .*/sshd_config[.]d/' /etc/ssh/sshd_config; then
  mkdir -p /etc/ssh/sshd_config.d
  printf '%s\n' "$line" >/etc/ssh/sshd_config.d/00-skyward.conf
else
  { printf '%s\n' "$line"; cat /etc/ssh/sshd_config; } >/etc/ssh/sshd_config.new
  mv /etc/ssh/sshd_config.new /etc/ssh/sshd_config
fi
@MOUNT@
systemctl restart ssh || systemctl restart sshd || service ssh restart
