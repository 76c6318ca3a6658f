#!/usr/bin/env bash
# Runs a benchmark, or all of them, one after another, and then renews the plots of docs/results.
# usage: scripts/bench.sh all|results|NAME [ARGUMENT...]: a name of a file in engine/bench/bench/scenarios
set -euo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps node builds; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
# Of 'all'. They are those of SCENARIOS in engine/bench/bench/results.py.
scenarios=(staged staged1 bigtx drain wal mine images streams latency wan fanout spill hotkeys table1 copy preflight rules conflicts queue metadata charts)
results=$THALWEG_ROOT/docs/results
scenario=${1:-staged}
shift || true
export THALWEG_LOCK=requirements-dev.lock
export PYTHONPATH=$THALWEG_ROOT/engine/test/system:$THALWEG_ROOT/engine/bench:$THALWEG_ROOT/scripts
export THALWEG_ENGINE=$THALWEG_BUILD/release/src/daemon/thalwegd
packages=(build extension runtime)
case $scenario in
  charts | console) packages+=(test) ;; # Chromium
  copy | table1) packages+=(bench) ;;
esac
if [[ -z ${THALWEG_GUARDED:-} ]]; then
  step "install packages" "run apt-get by hand and read what it says" "$THALWEG_ROOT/scripts/install.sh" "${packages[@]}"
  step "build venv" "check that the package index answers" build_venv
  guarded "$0" "$scenario" "$@"
fi

build_path() {
  step "build engine" "read the compiler's message above" build_engine release thalwegd
  step "build server libraries" "read the compiler's message above" build_server_libraries
}

# run_scenario NAME [ARGUMENT...]
run_scenario() {
  local name=$1
  shift
  case $name in
    queue | metadata)
      step "build benchmark" "read the compiler's message above" build_engine release "${name}_bench"
      set -- --program "$(find "$THALWEG_BUILD/release" -name "${name}_bench" -type f -perm -u+x)" "$@"
      ;;
    mine | images)
      build_path
      step "build benchmark" "read the compiler's message above" build_engine release mining_bench
      set -- --program "$(find "$THALWEG_BUILD/release" -name mining_bench -type f -perm -u+x)" "$@"
      ;;
    rules)
      build_path
      step "build benchmark" "read the compiler's message above" build_engine release rules_bench
      set -- --program "$(find "$THALWEG_BUILD/release" -name rules_bench -type f -perm -u+x)" "$@"
      ;;
    charts)
      step "build page" "read the message above" build_chart_page
      set -- --page "$THALWEG_BUILD/charts" "$@"
      ;;
    console)
      build_path
      use_node
      step "build console" "read npm's message above" build_console
      step "install the browser's driver" "check that the registry of npm answers" install_node_modules "$THALWEG_ROOT/e2e"
      ;;
    *) build_path ;;
  esac
  "$THALWEG_VENV/bin/python" -m bench "$name" "$@"
}

case $scenario in
  all)
    failed=()
    for name in "${scenarios[@]}"; do
      printf '\n== %s\n' "$name"
      # A process of its own: one that fails does not take the others' results along.
      "$0" "$name" --out "$results/$name.json" "$@" || failed+=("$name")
    done
    "$THALWEG_VENV/bin/python" -m bench.results "$results"
    if ((${#failed[@]})); then
      echo "failed: ${failed[*]}; their figures in docs/results, if any, are those of an earlier run" >&2
      exit 1
    fi
    ;;
  console) run_scenario console --page "$results/load.md" "$@" ;;
  results) "$THALWEG_VENV/bin/python" -m bench.results "$results" ;;
  *) run_scenario "$scenario" "$@" ;;
esac
