#!/bin/sh
# Sent as one line in single quotes: it holds none, and no end of line but after ; or before \.
export HOME="${HOME:-/root}"; d="$HOME/.skyward"; nl=$(printf "\nx"); nl=${nl%x};
mask=$(umask); umask 077; mkdir -p "$d" /run/sshd;
printf "%s\n" "$SKYWARD_START_LOGIN" >"$d/authorized_keys";
printf -- "-----BEGIN OPENSSH PRIVATE KEY-----\n%s\n-----END OPENSSH PRIVATE KEY-----\n" "@KEY@" >"$d/host_key";
for v in @HIDDEN@; do eval "x=\${$v:-}"; printf "%s=\"%s\"; export %s\n" "$v" "$x" "$v"; unset "$v"; done >"$d/end";
printf "%s\n" "n=0; until { @END@; }; do n=\$((n + 1)); [ \$n -lt @ENDINGS@ ] || exit 1; sleep 20; done" >>"$d/end";
umask "$mask";
c="${SKYWARD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyward}/nodes";
# A container that is started again has lost the watchdogs of its nodes, whose clients may never return.
for w in "$c"/*/watchdog.sh; do [ -e "$w" ] || continue; n=${w%/*};
sh "$w" "$n" >/dev/null 2>&1 </dev/null & echo $! >"$n/watchdog.pid"; done;
# Until a node's own watchdog is there, nothing else would end a container whose client died.
( seconds=@SECONDS@; step=@STEP@; endings=@ENDINGS@;
[ "$seconds" -gt 0 ] || exit 0; i=0; while [ "$i" -lt "$seconds" ]; do sleep "$step"; i=$((i + step)); done;
for w in "$c"/*/watchdog.pid; do [ -e "$w" ] && exit 0; done;
i=0; while [ "$i" -lt "$endings" ]; do sh "$d/end"; sleep 60; i=$((i + 1)); done ) >/dev/null 2>&1 </dev/null &
# What the image sets for what runs in it, its path first, is what a login gets as well.
s=; for v in $(env | sed -n "s/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p"); do
case $v in SKYWARD_START_* | PWD | OLDPWD | SHLVL | TERM | _) continue;; esac;
eval "x=\${$v:-}"; case $x in "" | *"$nl"* | *[\"\\]*) continue;; esac; s="$s \"$v=$x\""; done;
have() { command -v "$1" >/dev/null 2>&1; };
server() { command -v sshd || { [ -x /usr/sbin/sshd ] && echo /usr/sbin/sshd; }; };
install() {
if have apt-get; then apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@";
elif have apk; then apk add --no-cache "$@"; elif have dnf; then dnf install -y "$@"; else return 1; fi; };
n=0; set --; server >/dev/null || set -- openssh-server;
have curl || have wget || python3 -m pip --version >/dev/null 2>&1 || set -- "$@" curl ca-certificates;
while [ $# -gt 0 ] && [ "$n" -lt 5 ]; do echo "skyward: this image lacks $*"; install "$@" && break;
n=$((n + 1)); sleep "$n"; done;
sshd=$(server) || { echo "skyward: this image has no OpenSSH server, and none can be installed"; @WAIT@ exit 96; };
printf "%s\n" "HostKey $d/host_key" "AuthorizedKeysFile $d/authorized_keys" "SetEnv$s" "PidFile none" "StrictModes no" \
"PermitRootLogin prohibit-password" "PasswordAuthentication no" "UsePAM no" "MaxSessions 100" "MaxStartups 100" \
>"$d/sshd_config"; exec "$sshd" -D -e -f "$d/sshd_config"
