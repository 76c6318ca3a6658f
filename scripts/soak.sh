#!/usr/bin/env bash
# Tests that are too long for every change, run before every release: each of the engine's under the sanitizers, and for hours,
# with new seeds, the tests that have one. Each part gets the same share of the time, but for those of a fixed length
# (sanitizers, slow, rig, upgrade); one line for each, all of them run, also after a failure.
# usage: [SOAK_MINUTES=240] [SOAK_SEED=N] [SOAK_UPGRADE_FROM=COMMIT] scripts/soak.sh [PART...]     (all if none is named)
#   sanitizers  the engine's tests under sanitizers: address and undefined-behaviour all, thread those with threads
#   worlds      simulated worlds of the engine, from seeds on that 'make test' does not run; also under the address sanitizer
#   values      random values of every type, mined from the WAL and decoded by PostgreSQL
#   rules       conditions of rules, evaluated by the engine and by PostgreSQL
#   fuzz        libFuzzer on each parser, from its corpus
#   kills       whole engines on real servers, killed, cut off and compared row by row, with a new seed each round; before
#               them the receiver of WAL and its source, 1000 times
#   slow        suites of 'make test' with half of one core and a disk that takes 50 ms for a flush: SOAK_SLOW_SUITES, else
#               the engine's and the system's
#   rig         the advisor against real causes
#   upgrade     the whole product of an earlier commit, then this one's, over the same data and under load; from the last tag,
#               or where there is none from the last commit that is three days old
# A failure names its seed, and the command that repeats it. docs/results/soak.md keeps each part's last run.
set -uo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps node builds suites; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
export THALWEG_LOCK=requirements-dev.lock
(($#)) || set -- sanitizers worlds values rules fuzz kills slow rig upgrade
if [[ -z ${THALWEG_GUARDED:-} ]]; then
  step "install packages" "run apt-get by hand and read what it says" "$THALWEG_ROOT/scripts/install.sh" build extension runtime test system
  step "build venv" "check that the package index answers" build_venv
  guarded "$0" "$@"
fi
timed=0
for part in "$@"; do
  case $part in sanitizers | slow | rig | upgrade) ;; *) timed=$((timed + 1)) ;; esac
done
share=$((${SOAK_MINUTES:-240} * 60 / (timed ? timed : 1)))
seed=${SOAK_SEED:-$((10000 + RANDOM * 1000))}
log=$THALWEG_LOG/soak
mkdir -p "$log"

# rounds SECONDS WHAT COMMAND... : until SECONDS are over, with the round's number appended; the first failure ends them.
rounds() {
  local seconds=$1 what=$2 round=0 end
  shift 2
  end=$((SECONDS + seconds))
  while ((SECONDS < end)); do
    "$@" "$round" || { echo "round $round failed"; return 1; }
    round=$((round + 1))
  done
  echo "did: $round x $what"
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
  rounds $((share / 2)) "1000 worlds" worlds_of release 1000 &&
    rounds $((share / 2)) "100 worlds with sanitizers" worlds_of address 100
}

values_round() {
  THALWEG_VALUES_SEED=$((seed + $1)) THALWEG_VALUES=50000 "$THALWEG_BUILD/release/capture_test" --gtest_filter='MinedValuesTest.*'
}

soak_values() {
  build_engine release capture_test || return 1
  rounds "$share" "50 000 values of each type, and as many arrays" values_round
}

rules_round() {
  THALWEG_RULES_SEED=$((seed + $1)) THALWEG_RULES_PAIRS=1000000 \
    "$THALWEG_BUILD/release/rules_test" --gtest_filter='DifferentialTest.Judges*'
}

soak_rules() {
  build_engine release rules_test || return 1
  rounds "$share" "1 000 000 pairs of condition and row" rules_round
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
  build_engine release thalwegd shipment_test && install_servers && build_server_libraries || return 1
  THALWEG_SHIPMENT_KILLS=1000 "$THALWEG_BUILD/release/shipment_test" --gtest_filter='WalReceiverTest.*' && echo "did: 1000 kills of the receiver" || return 1
  rounds "$share" "ten files of system tests" kill_round
}

# The programs are built before: the compiler needs no slow machine.
soak_slow() {
  local suites=${SOAK_SLOW_SUITES:-engine system}
  build_engine release && install_servers && build_server_libraries || return 1
  # shellcheck disable=SC2086  # words, not one name
  "$THALWEG_ROOT/scripts/slow_machine.sh" "$THALWEG_ROOT/scripts/test.sh" $suites && echo "did: $suites"
}

soak_rig() { "$THALWEG_ROOT/scripts/advisor_rig.sh"; }

earlier_commit() {
  local commit=${SOAK_UPGRADE_FROM:-}
  [[ -n $commit ]] || commit=$(git -C "$THALWEG_ROOT" describe --tags --abbrev=0 HEAD^ 2>/dev/null) ||
    commit=$(git -C "$THALWEG_ROOT" rev-list -1 --before='3 days ago' HEAD)
  git -C "$THALWEG_ROOT" rev-parse --verify --quiet "$commit^{commit}"
}

soak_upgrade() {
  local commit earlier status=0
  commit=$(earlier_commit) || { echo "no earlier commit '${SOAK_UPGRADE_FROM:-}': name one with SOAK_UPGRADE_FROM"; return 1; }
  earlier=$(mktemp -d "${TMPDIR:-/tmp}/thalweg-earlier-XXXXXX") && chmod 755 "$earlier" || return 1
  git -C "$THALWEG_ROOT" worktree add --detach "$earlier" "$commit" || return 1
  "$THALWEG_ROOT/scripts/upgrade_stack.sh" "$earlier" || status=1
  git -C "$THALWEG_ROOT" worktree remove --force "$earlier" || status=1
  ((status == 0)) || return 1
  echo "did: from $(git -C "$THALWEG_ROOT" show -s --format='%h of %cs' "$commit") to $(git -C "$THALWEG_ROOT" show -s --format=%h)"
}

# Of a part's log: how much was done.
did_of() {
  local found
  found=$(sed -n 's/^did: //p' "$1" | paste -sd ';')
  [[ -n $found ]] || found=$(grep -aE '% tests passed|^totals: |causes were named' "$1" | paste -sd ';')
  echo "$found"
}

for part in "$@"; do
  declare -F "soak_$part" >/dev/null || { echo "unknown part '$part'" >&2; exit 2; }
done
echo "seed $seed, $((share / 60)) minutes for each part"
status=0
for part in "$@"; do
  started=$SECONDS
  mark=✓
  "soak_$part" >"$log/$part.log" 2>&1 </dev/null || { mark=✗; status=1; }
  took=$((SECONDS - started))
  did=$(did_of "$log/$part.log")
  printf '%s %-10s %6ds  %s\n' "$mark" "$part" "$took" "$did"
  [[ $mark == ✓ ]] || tail -n 40 "$log/$part.log" | sed 's/^/  │ /'
  "$THALWEG_VENV/bin/python" "$THALWEG_ROOT/scripts/soak_results.py" "$part" "$mark" "$took" "$seed" "$did"
done
exit "$status"
