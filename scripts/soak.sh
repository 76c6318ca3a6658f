#!/usr/bin/env bash
# Tests that are too long for every change, run before every release: each of the engine's under the sanitizers, and for hours,
# with new seeds, the tests that have one. Each part gets the same share of the time, but for those of a fixed length
# (sanitizers, rig); one line for each, all of them run, also after a failure.
# usage: [SOAK_MINUTES=240] [SOAK_SEED=N] scripts/soak.sh [PART...]     (all of them if none is named)
#   sanitizers  the engine's tests under the address, undefined-behaviour and thread sanitizers
#   worlds      simulated worlds of the engine, from seeds on that 'make test' does not run; also under the address sanitizer
#   rules       conditions of rules, evaluated by the engine and by PostgreSQL
#   fuzz        libFuzzer on each parser, from its corpus
#   kills       whole engines on real servers, killed, cut off and compared row by row, with a new seed each round
#   rig         the advisor against real causes
# A failure names its seed, and the command that repeats it.
set -uo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps node builds suites; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
export THALWEG_LOCK=requirements-dev.lock
(($#)) || set -- sanitizers worlds rules fuzz kills rig
if [[ -z ${THALWEG_GUARDED:-} ]]; then
  step "install packages" "run apt-get by hand and read what it says" "$THALWEG_ROOT/scripts/install.sh" build extension runtime test system
  step "build venv" "check that the package index answers" build_venv
  guarded "$0" "$@"
fi
timed=0
for part in "$@"; do
  case $part in sanitizers | rig) ;; *) timed=$((timed + 1)) ;; esac
done
share=$((${SOAK_MINUTES:-240} * 60 / (timed ? timed : 1)))
seed=${SOAK_SEED:-$((10000 + RANDOM * 1000))}
log=$THALWEG_LOG/soak
mkdir -p "$log"

# Rounds of COMMAND until SECONDS are over, with the round's number appended; the first failure ends them.
rounds() {
  local seconds=$1 round=0 end
  shift
  end=$((SECONDS + seconds))
  while ((SECONDS < end)); do
    "$@" "$round" || { echo "round $round failed"; return 1; }
    round=$((round + 1))
  done
  echo "did: $round rounds"
}

worlds_of() {
  local tree=$1 number=$2 round=$3 first
  first=$((seed + round * number))
  "$THALWEG_BUILD/$tree/test/simulation/simulation" --jobs "$THALWEG_JOBS" --seeds "$first..$((first + number - 1))"
}

soak_sanitizers() {
  mkdir -p "$log/sanitizers"
  suite_sanitizers "$log/sanitizers"
}

soak_worlds() {
  build_engine release simulation && build_engine address simulation || return 1
  rounds $((share / 2)) worlds_of release 1000 && rounds $((share / 2)) worlds_of address 100
}

rules_round() {
  THALWEG_RULES_SEED=$((seed + $1)) THALWEG_RULES_PAIRS=1000000 \
    "$THALWEG_BUILD/release/rules_test" --gtest_filter='DifferentialTest.Judges*'
}

soak_rules() {
  build_engine release rules_test || return 1
  rounds "$share" rules_round
}

soak_fuzz() {
  local targets
  targets=$(find "$THALWEG_ROOT/engine/src" -name '*_fuzz.cc' | wc -l)
  mkdir -p "$log/fuzz"
  rm -f "$log/fuzz"/*
  THALWEG_FUZZ_SECONDS=$((share * THALWEG_JOBS / targets)) suite_fuzz "$log/fuzz"
}

kill_round() {
  (cd "$THALWEG_ROOT/engine/test/system" && THALWEG_ENGINE=$THALWEG_BUILD/release/src/daemon/thalwegd \
    "$THALWEG_VENV/bin/pytest" -q -p no:cacheprovider --seed "$((seed + $1))" test_faults.py test_failover.py test_fan_out.py \
    test_instantiation.py test_lifecycle.py test_network.py test_outages.py test_spill.py test_streaming.py test_two_engines.py)
}

soak_kills() {
  build_engine release thalwegd && install_newer_server && build_server_libraries || return 1
  rounds "$share" kill_round
}

soak_rig() { "$THALWEG_ROOT/scripts/advisor_rig.sh"; }

for part in "$@"; do
  declare -F "soak_$part" >/dev/null || { echo "unknown part '$part'" >&2; exit 2; }
done
echo "seed $seed, $((share / 60)) minutes for each part"
status=0
for part in "$@"; do
  started=$SECONDS
  mark=✓
  "soak_$part" >"$log/$part.log" 2>&1 </dev/null || { mark=✗; status=1; }
  printf '%s %-10s %6ds  %s\n' "$mark" "$part" "$((SECONDS - started))" \
    "$(grep -aE '^did: |worlds|passed' "$log/$part.log" | tail -n 1)"
  [[ $mark == ✓ ]] || tail -n 40 "$log/$part.log" | sed 's/^/  │ /'
done
exit "$status"
