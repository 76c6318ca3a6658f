# shellcheck shell=bash
# Node.js 20.19 or later: the machine's own, else a pinned wheel under THALWEG_ROOT/.thalweg/node-venv. Sourced.

NODE_VENV=${NODE_VENV:-$THALWEG_ROOT/.thalweg/node-venv}

# True when NODE is 20.19 or later, the oldest that Vite 8 runs on.
node_is_new_enough() {
  local version major minor
  version=$("$1" --version 2>/dev/null) || return 1
  IFS=. read -r major minor _ <<<"${version#v}"
  ((major > 20 || (major == 20 && minor >= 19)))
}

# Puts a fitting node and npm at the front of PATH; installs the wheel when there is none.
use_node() {
  if command -v npm >/dev/null && node_is_new_enough node; then
    return 0
  fi
  if ! node_is_new_enough "$NODE_VENV/bin/node"; then
    echo "node on this machine: $(node --version 2>/dev/null || echo none); installing the pinned wheel"
    python3 -m venv "$NODE_VENV"
    "$NODE_VENV/bin/pip" install --quiet --disable-pip-version-check --require-hashes \
      -r "$THALWEG_ROOT/scripts/node-requirements.lock"
  fi
  export PATH=$NODE_VENV/bin:$PATH
}
