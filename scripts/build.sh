#!/usr/bin/env bash
# Builds what is out of date. usage: scripts/build.sh [engine] [server-libraries] [venv] [console] [help]      (default: all)
set -euo pipefail
source "$(dirname "$0")/settings.sh"
source "$THALWEG_ROOT/scripts/lib/steps.sh"
source "$THALWEG_ROOT/scripts/lib/node.sh"
source "$THALWEG_ROOT/scripts/lib/builds.sh"

(($#)) || set -- engine server-libraries venv console help
mkdir -p "$THALWEG_BUILD"
exec {lock}>"$THALWEG_BUILD/.lock"
flock "$lock"
for part in "$@"; do
  case $part in
    engine) step "build engine" "read the compiler's message above; 'make clean' starts afresh" build_engine release thalwegd ;;
    server-libraries) step "build server libraries" "read the compiler's message above" build_server_libraries ;;
    venv) step "build venv" "check that the package index answers; 'make clean' starts afresh" build_venv ;;
    console) step "build console" "read the message above; 'rm -rf frontend/node_modules' starts afresh" build_console ;;
    help) step "build help" "read the message above: it names the page and the link" build_help ;;
    *) echo "unknown part '$part': engine, server-libraries, venv, console or help" >&2; exit 2 ;;
  esac
done
