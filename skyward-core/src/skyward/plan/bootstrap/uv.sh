#!/bin/sh
find_uv() {
  for UV in "$(command -v uv || :)" "$LOGIN_HOME/.local/bin/uv" "$LOGIN_HOME/.cargo/bin/uv" "$TOOLS/bin/uv"; do
    # One that was built for another machine may lie there.
    if [ -n "$UV" ] && "$UV" --version >/dev/null 2>&1; then return 0; fi
  done
  return 1
}
get_uv() {
  if find_uv; then return 0; fi
  lock 9 "$SKYWARD_HOME/locks/tools"
  if ! find_uv; then
    python=${PYTHON:-python3}
    if "$python" -m pip --version >/dev/null 2>&1; then
      echo '@REQUIREMENT@' >"$TOOLS/uv.txt"
      run 'pip install uv==@VERSION@' "$python" -m pip install --quiet --upgrade --no-deps --only-binary :all: \
        --require-hashes --target "$TOOLS" -r "$TOOLS/uv.txt" || :
    fi
    if ! find_uv; then fetch_uv || :; fi
  fi
  unlock 9
  find_uv
}
hash_of() {
  { sha256sum "$1" || shasum -a 256 "$1" || openssl dgst -sha256 -r "$1"; } 2>/dev/null |
    { read -r found rest; echo "$found"; }
}
fetch_uv() {
  case $(uname -sm) in
    'Linux x86_64') machine=x86_64 hash=@X86_64@ ;;
    'Linux aarch64') machine=aarch64 hash=@AARCH64@ ;;
    *) return 1 ;;
  esac
  name=uv-$machine-unknown-linux-musl archive=$TOOLS/uv.tar.gz
  url=https://github.com/astral-sh/uv/releases/download/@VERSION@/$name.tar.gz
  if command -v curl >/dev/null 2>&1; then
    run "curl $url" curl -LsSf --connect-timeout 20 --max-time 300 -o "$archive" "$url" || return 1
  elif command -v wget >/dev/null 2>&1; then
    run "wget $url" wget -q -T 20 -O "$archive" "$url" || return 1
  else
    return 1
  fi
  if [ "$(hash_of "$archive")" != "$hash" ]; then
    rm -f "$archive"
    printf 'skyward: what came from %s is not uv @VERSION@: its SHA-256 is another\n' "$url"
    return 1
  fi
  run "tar -xzf $archive" tar -xzf "$archive" -C "$TOOLS" || return 1
  mkdir -p "$TOOLS/bin" && mv -f "$TOOLS/$name/uv" "$TOOLS/bin/uv"
}
