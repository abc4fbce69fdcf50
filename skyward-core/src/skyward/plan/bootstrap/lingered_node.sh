#!/bin/sh
node="${SKYWARD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyward}/nodes/"@NAME@
