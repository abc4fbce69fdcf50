#!/bin/sh
unset IFS CDPATH SKYWARD_NODE
UMASK=$1
LOGIN_HOME=$2
SKYWARD_HOME=$3
PHASE=start
BREAK=
WITH=
HELD7= HELD8= HELD9=
ENVIRONMENT=
PYTHON=
# It goes on when the connection it was started over drops.
trap '' HUP
trap 'leave $?' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
umask 077
make_entries "$SKYWARD_HOME"
SKYWARD_HOME=$(cd "$SKYWARD_HOME" && pwd)
TOOLS=$SKYWARD_HOME/tools
RUNTIME=$SKYWARD_HOME/runtime/@RUNTIME@
NODE=@NODE@
MARK=${NODE##*/}
mkdir -p "$NODE"
lock 7 "$NODE/bootstrap"
remove_ruins
# uv reads none of pip's own settings.
if [ -n "${PIP_FIND_LINKS:-}" ]; then export UV_FIND_LINKS="${UV_FIND_LINKS:-$PIP_FIND_LINKS}"; fi
if [ -n "${PIP_INDEX_URL:-}" ]; then export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-${UV_INDEX_URL:-$PIP_INDEX_URL}}"; fi
if [ -n "${PIP_EXTRA_INDEX_URL:-}" ]; then export UV_EXTRA_INDEX_URL="${UV_EXTRA_INDEX_URL:-$PIP_EXTRA_INDEX_URL}"; fi
