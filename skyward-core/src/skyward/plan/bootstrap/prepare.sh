#!/bin/sh
# Makes this machine ready for Skyward. Running it again continues where it was.
set -eu
NEWLINE='
'
say() {
  # What ran before may have left its last line open.
  printf '%s@@%s %s\n' "$BREAK" "$TOKEN" "$1"
  BREAK=
}
fail() {
  printf 'skyward: %s\n' "$1"
  exit 1
}
leave() {
  trap - EXIT
  for fd in 7 8 9; do unlock "$fd" || :; done
  [ "$1" = 0 ] || { BREAK=$NEWLINE; say "failed $PHASE $1"; }
  exit "$1"
}
clock() {
  # Hundredths of a second; the 1 in front keeps a leading zero from making the number octal.
  if { read -r uptime rest </proc/uptime; } 2>/dev/null; then
    NOW=$((${uptime%.*} * 100 + 1${uptime#*.} - 100))
  else
    NOW=$(($(date +%s) * 100))
  fi
}
phase() {
  PHASE=$1
  clock
  BEGAN=$NOW
  say "phase started $1"
}
completed() {
  clock
  spent=$((NOW - BEGAN))
  say "phase completed $PHASE $(printf '%d.%02d' $((spent / 100)) $((spent % 100)))"
}
run() {
  say "command $1"
  BREAK=$NEWLINE
  shift
  (
    umask "$UMASK"
    # Only for what is run here: a program of the user's may need the other certificates of the machine as well.
    if [ -n "${PIP_CERT:-}" ]; then export SSL_CERT_FILE="${SSL_CERT_FILE:-$PIP_CERT}"; fi
    eval "$WITH"
    exec "$@"
  ) 7>&- 8>&- 9>&-
}
as_user() (
  # The image may have variables of the same names as ours.
  set -- "$UMASK" "$ENVIRONMENT" "$MARK" "$@"
  image_env
  umask "$1"
  if [ -n "$2" ]; then export PATH="$2/bin:$PATH" VIRTUAL_ENV="$2"; fi
  export SKYWARD_NODE="$3"
  shift 3
  exec "$@" 7>&- 8>&- 9>&-
)
user() {
  say "command $1"
  BREAK=$NEWLINE
  shift
  as_user "$@"
}
shell_var() {
  say "command $2"
  BREAK=$NEWLINE
  value=$(as_user sh -c "$3")
  printf '%s=%s\0' "$1" "$value" >>"$NODE/shell_vars.new"
}
born() {
  # The moment a process began, because numbers of processes come around again.
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
  # shellcheck disable=SC2086 # these are words
  set -- ${stat##*) }
  case $1 in Z | X) ;; *) echo "${20}" ;; esac
}
lock() {
  if command -v flock >/dev/null 2>&1; then
    eval "exec $1>>\"\$2.lock\""
    flock "$1"
    return
  fi
  until ln -sn "$$-$(born $$)" "$2.held" 2>/dev/null; do
    holder=$(readlink "$2.held") || continue
    # Only one may take it from a holder that has died, and only while it is still that one's.
    if [ "$(born "${holder%-*}")" != "${holder#*-}" ] && mkdir "$2.broken" 2>/dev/null; then
      [ "$(readlink "$2.held")" != "$holder" ] || rm -f "$2.held"
      rmdir "$2.broken"
    else
      pause
    fi
  done
  eval "HELD$1=\$2.held"
}
unlock() {
  eval "held=\${HELD$1:-}; HELD$1=; exec $1>&-"
  [ -z "$held" ] || rm -f "$held"
}
detach() (
  # A process of its own session, which writes down its number before it is anything else.
  pidfile=$1 log=$2
  shift 2
  set -- sh -c 'echo $$ >"$0.new" && mv -f "$0.new" "$0" && exec "$@"' "$pidfile" "$@"
  if command -v setsid >/dev/null 2>&1; then set -- setsid "$@"; else set -- nohup "$@"; fi
  cd /
  "$@" >>"$log" 2>&1 </dev/null 7>&- 8>&- 9>&- &
)
start_watchdog() {
  write_watchdog >"$NODE/watchdog.new"
  pid=$(cat "$NODE/watchdog.pid" 2>/dev/null || :)
  if [ -n "$pid" ] && holds "/proc/$pid/cmdline" "$NODE/watchdog.sh" &&
    [ "$(cat "$NODE/watchdog.new")" = "$(cat "$NODE/watchdog.sh")" ]; then
    rm -f "$NODE/watchdog.new"
    return
  fi
  phase watchdog
  rm -f "$NODE/watchdog.pid"
  mv -f "$NODE/watchdog.new" "$NODE/watchdog.sh"
  detach "$NODE/watchdog.pid" /dev/null sh "$NODE/watchdog.sh" "$NODE"
  until [ -s "$NODE/watchdog.pid" ]; do
    pause
    clock
    [ $((NOW - BEGAN)) -lt 3000 ] || fail 'the watchdog does not start'
  done
  completed
}
lives() {
  # Whether the agent or the watchdog of a node's directory is there.
  pid=$(cat "$1/agent.pid" 2>/dev/null || :)
  if [ -n "$pid" ] && holds "/proc/$pid/environ" "SKYWARD_NODE=${1##*/}"; then return 0; fi
  pid=$(cat "$1/watchdog.pid" 2>/dev/null || :)
  [ -n "$pid" ] && holds "/proc/$pid/cmdline" "$1/watchdog.sh"
}
remove_ruins() {
  # A reboot ends the watchdog that would have removed a node's directory, and its client may never return.
  [ -d /proc/self ] || return 0
  for lease in "${NODE%/*}"/*/lease; do
    old=${lease%/lease}
    if [ ! -f "$lease" ] || [ "$old" = "$NODE" ] || lives "$old"; then continue; fi
    if [ -n "$(find "$lease" -mtime +6 2>/dev/null)" ]; then rm -rf "$old"; fi
  done
}
has_package() {
  case $1 in
    *=*) set -- "${1%%=*}" '${Status} ${Version}' "install ok installed ${1#*=}" ;;
    *) set -- "$1" '${Status}' 'install ok installed' ;;
  esac
  case $(dpkg-query -W -f="$2" "$1" 2>/dev/null) in "$3"*) ;; *) return 1 ;; esac
}
# shellcheck disable=SC2086,SC2153 # $sudo is no word, or two; the cache's path is set by then
install_packages() {
  for package; do
    shift
    has_package "$package" || set -- "$@" "$package"
  done
  [ $# -gt 0 ] || return 0
  phase apt
  command -v apt-get >/dev/null 2>&1 || fail "no apt-get on this machine, which lacks: $*"
  if [ "$(id -u)" = 0 ]; then
    sudo=
  elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    sudo='sudo -n'
  else
    fail "apt needs root: this user is not root and has no sudo without a password, and the machine lacks: $*"
  fi
  lock 9 "$SKYWARD_HOME/locks/apt"
  tries=0
  while ! run 'apt-get update' $sudo apt-get -o DPkg::Lock::Timeout=300 update 2>"$NODE/apt.errors"; do
    cat "$NODE/apt.errors"
    # The lists are locked while a machine that has just booted fetches them itself, and apt-get does not wait for that.
    if grep -q lists/lock "$NODE/apt.errors"; then most=100; else most=5; fi
    tries=$((tries + 1))
    [ "$tries" -lt "$most" ] || break
    sleep 3
  done
  run "apt-get install --yes $*" $sudo env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 install --yes "$@"
  unlock 9
  completed
}
try_python() {
  [ -x "$1" ] && [ ! -d "$1" ] || return 1
  answer=$("$1" -I -c 'import sys
if sys.implementation.name != "cpython": sys.exit(1)
print("%d.%d.%d" % sys.version_info[:3])
print(sys.executable)' 2>/dev/null) || return 1
  case ${answer%%"$NEWLINE"*}. in
    "$WANTED".*) PYTHON=${answer#*"$NEWLINE"} ;;
    *)
      answer="${answer#*"$NEWLINE"} (${answer%%"$NEWLINE"*})"
      case "$FOUND," in *" $answer,"*) ;; *) FOUND="${FOUND:+$FOUND,} $answer" ;; esac
      return 1
      ;;
  esac
}
search_python() {
  for name in "python$MINOR" python3 python; do
    rest=$PATH:/usr/local/bin:
    while [ -n "$rest" ]; do
      if try_python "${rest%%:*}/$name"; then return 0; fi
      rest=${rest#*:}
    done
  done
  for name in "$LOGIN_HOME"/.pyenv/versions/*/bin/python3; do
    if try_python "$name"; then return 0; fi
  done
  get_uv || return 1
  export UV_PYTHON_INSTALL_DIR="$SKYWARD_HOME/python"
  run "uv python install $WANTED" "$UV" python install --no-bin "$WANTED" || return 1
  try_python "$("$UV" python find --no-project "$WANTED" 2>/dev/null)"
}
find_python() {
  phase python
  FOUND=
  search_python || fail "no Python $WANTED on this machine: found${FOUND:- none}"
  completed
}
open_environment() {
  lock 8 "$ENVIRONMENT"
  # Without its first step it is a ruin, and so it is when the Python below it has gone.
  if todo venv || ! "$ENVIRONMENT/bin/python" -I -c '' 2>/dev/null; then rm -rf "$ENVIRONMENT"; fi
}
todo() {
  [ ! -e "$ENVIRONMENT/.complete" ] && [ ! -e "$ENVIRONMENT/.skyward/$1" ]
}
finished() {
  mkdir -p "$ENVIRONMENT/.skyward"
  : >"$ENVIRONMENT/.skyward/$1"
}
start_agent() {
  pid=$(cat "$NODE/agent.pid" 2>/dev/null || :)
  if [ -n "$pid" ] && carries "$pid"; then
    if [ -S "$NODE/agent.sock" ]; then return 0; fi
    end_agent
  fi
  phase agent
  say "command $1"
  shift
  rm -f "$NODE/agent.sock" "$NODE/agent.pid"
  : >"$NODE/agent.log"
  (
    set -- "$NODE/agent.pid" "$NODE/agent.log" env PYTHONPATH="$RUNTIME" SKYWARD_NODE="$MARK" "$@"
    image_env
    detach "$@"
  )
  until [ -S "$NODE/agent.sock" ]; do
    pid=$(cat "$NODE/agent.pid" 2>/dev/null || :)
    if [ -n "$pid" ] && [ -z "$(born "$pid")" ]; then
      tail -n 20 "$NODE/agent.log"
      fail 'the agent ended as soon as it was started'
    fi
    clock
    if [ $((NOW - BEGAN)) -ge 3000 ]; then
      end_agent
      tail -n 20 "$NODE/agent.log"
      fail 'the agent was not ready within 30 s'
    fi
    pause
  done
  completed
}
end_agent() {
  [ -z "$pid" ] || kill -9 "-$pid" "$pid" 2>/dev/null || :
}
