#!/usr/bin/env bash
# Starts a stack of its own (other state, other ports), runs the journeys in Chromium, and brings the stack down again.
# usage: e2e/run.sh [PLAYWRIGHT-ARGUMENT...]
#   RESULTS=directory    also writes a JUnit file there
#   E2E_SCREENSHOTS=1    also writes docs/images
#   E2E_PATIENCE=factor  waits longer, as a slow machine needs it (scripts/slow_machine.sh)
#   E2E_KEEP=1           leaves the stack running, and uses one that runs
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=${here%/e2e}

# Nothing of the caller's stack may leak into this one: neither its home nor its ports.
# All ports lie beside those that Linux gives to outgoing connections, so none of them is taken while a server restarts.
offset=${E2E_PORT_OFFSET:-7000}
for name in $(compgen -e THALWEG_ || true); do
  case $name in
    THALWEG_BUILD | THALWEG_VENV | THALWEG_GUARDED | THALWEG_SKIP_BUILD | THALWEG_JOBS | THALWEG_LOCK | THALWEG_PG_BIN | THALWEG_PG_USER) ;;
    *) unset "$name" ;;
  esac
done
export THALWEG_HOME=${E2E_HOME:-$root/.thalweg/e2e} THALWEG_PORT_OFFSET=$offset
export THALWEG_DEMO_SCALE=1 THALWEG_DEMO_RATE=${E2E_DEMO_RATE:-100}
source "$root/scripts/settings.sh"
for part in steps secrets users clusters daemons node builds services; do
  # shellcheck source=/dev/null
  source "$root/scripts/lib/$part.sh"
done

# A stack that is to stay cannot be guarded.
[[ ${E2E_KEEP:-} == 1 ]] || guarded "$0" "$@"

# Where the services' users cannot enter the state directory, their data lie elsewhere.
remove_data() {
  rm -rf "$(services_directory)" "$THALWEG_HOME"
}

end() {
  local status=$?
  trap - EXIT INT TERM
  if ((status != 0)); then
    mkdir -p "$here/test-results"
    rm -rf "$here/test-results/log"
    cp -r "$THALWEG_LOG" "$here/test-results/log" 2>/dev/null || true
    echo "the stack's logs: e2e/test-results/log; traces and screenshots: e2e/test-results/artefacts"
  fi
  if [[ ${E2E_KEEP:-} != 1 ]]; then
    "$root/scripts/down.sh" && remove_data || status=1
  fi
  exit "$status"
}

# A new one, known to nobody else; 'make admin-password' prints it in words.
admin_password() {
  "$root/scripts/admin_password.sh" | sed -n 's/^  password  *\([^ ]*\)  *(shown this once.*/\1/p'
}

if [[ ${E2E_KEEP:-} != 1 && -e $THALWEG_HOME ]]; then
  echo "the stack of an earlier run is still there; removing it"
  "$root/scripts/down.sh" >/dev/null && remove_data
fi
trap end EXIT
trap 'exit 130' INT TERM
"$root/scripts/up.sh" | grep -v '^  password'
"$here/services.sh"

use_node
install_node_modules "$here"
rm -rf "$here/test-results"
E2E_ADMIN_PASSWORD=$(admin_password)
[[ -n $E2E_ADMIN_PASSWORD ]] || { echo "no password for admin" >&2; exit 1; }
E2E_RUN=$(printf '%x' "$(($(date +%s) % 1000000))")
export E2E_ADMIN_PASSWORD E2E_RUN THALWEG_ENGINE_BINARY THALWEG_SECRETS THALWEG_PG_BIN THALWEG_SOURCE_PORT THALWEG_DESTINATION_PORT THALWEG_RELAY_PORT
(cd "$here" && NO_PROXY='*' no_proxy='*' npx playwright test "$@")
