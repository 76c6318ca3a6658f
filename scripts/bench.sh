#!/usr/bin/env bash
# Runs a benchmark. usage: scripts/bench.sh queue|metadata|staged|spill [ARGUMENT...]
set -euo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps builds; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
scenario=${1:-staged}
shift || true
step "install packages" "run apt-get by hand and read what it says" "$THALWEG_ROOT/scripts/install.sh" build extension runtime
case $scenario in
  queue | metadata)
    step "build benchmark" "read the compiler's message above" build_engine release "${scenario}_bench"
    exec "$(find "$THALWEG_BUILD/release" -name "${scenario}_bench" -type f -perm -u+x)" "$@"
    ;;
  staged | spill)
    export THALWEG_LOCK=requirements-dev.lock
    step "build venv" "check that the package index answers" build_venv
    step "build engine" "read the compiler's message above" build_engine release thalwegd
    step "build data layer" "read the compiler's message above" build_datalayer
    export THALWEG_ENGINE=$THALWEG_BUILD/release/src/daemon/thalwegd
    export PYTHONPATH=$THALWEG_ROOT/engine/test/system:$THALWEG_ROOT/engine/bench
    exec "$THALWEG_VENV/bin/python" -m "$scenario" "$@"
    ;;
  *) echo "unknown scenario '$scenario': queue, metadata, staged or spill" >&2 && exit 2 ;;
esac
