#!/bin/sh
cache="${SKYWARD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyward}"
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
echo "cache=$cache"
echo "system=$(uname -s)"
echo "machine=$(uname -m)"
echo "hostname=$(uname -n)"
echo "cpus=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)"
echo "memory_kb=$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo 2>/dev/null)"
echo "now=$(date +%s 2>/dev/null)"
echo "server=$(echo "${SSH_CONNECTION:-}" | cut -d' ' -f3)"
echo "port=$(echo "${SSH_CONNECTION:-}" | cut -d' ' -f4)"
problem=$(unsafe "$cache" | sed -n 1p)
if [ -z "$problem" ]; then
    (umask 077; make_entries "$cache") 2>/dev/null
    problem=$(unsafe "$cache" | sed -n 1p)
fi
if [ -n "$problem" ]; then
    echo "unsafe=$problem"
elif (umask 077; : >"$cache/.writable.$$") 2>/dev/null; then
    rm -f "$cache/.writable.$$"; echo "writable=yes"
fi
echo "free_kb=$(df -Pk "$cache" 2>/dev/null | sed -n '2p' | tr -s ' ' | cut -d' ' -f4)"
echo "disk_kb=$(df -Pk "$cache" 2>/dev/null | sed -n '2p' | tr -s ' ' | cut -d' ' -f2)"
for found in "$cache"/runtime/*/; do
    [ -e "$found.complete" ] && echo "runtime=$(basename "$found")"
done
for found in uv "$HOME/.local/bin/uv" "$HOME/.cargo/bin/uv" "$cache/tools/bin/uv"; do
    if command -v "$found" >/dev/null 2>&1; then echo "uv=yes"; break; fi
done
python3 -I -c 'import importlib.util as i; print("pip=yes" if i.find_spec("pip") else "pip=no")' 2>/dev/null
nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits 2>/dev/null | sed 's/^/gpu=/'
nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | sed -n '1s/^ *\([0-9][0-9.]*\) *$/driver=\1/p'
nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9][0-9.]*\).*/cuda=\1/p'
nvidia-smi --query-gpu=ecc.errors.uncorrected.volatile.total --format=csv,noheader,nounits 2>/dev/null |
    sed -n 's/^ *\([0-9][0-9]*\) *$/ecc=\1/p'
dmesg 2>/dev/null | sed -n 's/.*NVRM: Xid ([^)]*): \([0-9]*\).*/xid=\1/p' | sort -u
exit 0
