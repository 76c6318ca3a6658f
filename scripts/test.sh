#!/usr/bin/env bash
# Runs suites, one line each, all of them also after a failure; the lines of each test that fails; a table, what failed, a total.
# usage: scripts/test.sh SUITE...      (see scripts/lib/suites.sh)
set -uo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps node builds suites; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
export THALWEG_LOCK=requirements-dev.lock
results=$THALWEG_HOME/test-results
summary=()
reasons=()
total_passed=0
total_failed=0

needs_packages() {
  local groups='build extension runtime'
  case " $* " in *' e2e '* | *' lint '* | *' sanitizers '* | *' fuzz '*) groups+=' test' ;; esac
  case " $* " in *' system '* | *' backend '*) groups+=' system' ;; esac
  echo "$groups"
}

run_suite() {
  local name=$1 log=$THALWEG_LOG/test-$1.log started=$SECONDS status found seconds passed failed skipped mark=✓
  rm -rf "${results:?}/$name"
  mkdir -p "$results/$name" "$THALWEG_LOG"
  (
    set -euo pipefail
    "suite_$name" "$results/$name"
  ) >"$log" 2>&1 </dev/null
  status=$?
  seconds=$((SECONDS - started))
  mapfile -t found < <("$THALWEG_VENV/bin/python" "$THALWEG_ROOT/scripts/test_results.py" "$results/$name" "$log")
  read -r passed failed skipped <<<"${found[0]:-0 0 0}"
  # A suite that ended badly failed, also where no single test says so; one that ran nothing did not pass.
  if ((status != 0 && failed == 0)) || ((status == 0 && passed == 0)); then
    failed=$((failed + 1))
  fi
  ((failed == 0)) || mark=✗
  printf -v line '%s %-12s %5d passed %4d failed %4d skipped %5ds' "$mark" "$name" "$passed" "$failed" "$skipped" "$seconds"
  echo "$line"
  if ((failed)); then
    echo "  ── what failed of $log"
    "$THALWEG_VENV/bin/python" "$THALWEG_ROOT/scripts/failed_lines.py" "$results/$name" "$log" | sed 's/^/  │ /'
    [[ -n ${found[1]:-} ]] || found[1]="$name ended with status $status; no test and no step says why"
    reasons+=("${found[@]:1}")
  fi
  summary+=("$line")
  total_passed=$((total_passed + passed))
  total_failed=$((total_failed + failed))
}

for suite in "$@"; do
  declare -F "suite_$suite" >/dev/null || { echo "unknown suite '$suite'" >&2; exit 2; }
done
if [[ -z ${THALWEG_GUARDED:-} ]]; then
  # shellcheck disable=SC2046  # words, not one name
  step "install packages" "run apt-get by hand and read what it says" "$THALWEG_ROOT/scripts/install.sh" $(needs_packages "$@")
  step "build venv" "check that the package index answers" build_venv
  # A stack that is to stay cannot be guarded.
  [[ ${E2E_KEEP:-} == 1 ]] || guarded "$0" "$@"
fi
started=$SECONDS
for suite in "$@"; do
  run_suite "$suite"
done
if (($# > 1)); then
  printf '\n%s\n' "suites, $((SECONDS - started)) s in all"
  printf '%s\n' "${summary[@]}"
fi
# Last, because whoever keeps only the end of a log wants this.
((${#reasons[@]} == 0)) || printf '  %s\n' "${reasons[@]}"
echo "$total_passed passed, $total_failed failed"
((total_failed == 0))
