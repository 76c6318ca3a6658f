#!/usr/bin/env bash
# Runs suites, one line each, all of them also after a failure; the lines of each test that fails; where the time went; a total.
# usage: scripts/test.sh SUITE...      (see scripts/lib/suites.sh)
#
# The static checks, which have no servers and no clock to keep, run beside the others on the processor time that these leave
# (SCHED_IDLE). The tests of engines and of the control plane on real servers run together: both mostly wait.
set -uo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps node builds suites; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
export THALWEG_LOCK=requirements-dev.lock
summary=()
reasons=()
total_passed=0
total_failed=0

needs_packages() {
  local groups='build extension runtime'
  case " $* " in *' e2e '* | *' lint '* | *' races '* | *' sanitizers '* | *' fuzz '*) groups+=' test' ;; esac
  case " $* " in *' system '* | *' backend '*) groups+=' system' ;; esac
  echo "$groups"
}

report_suite() {
  local name=$1 log=$THALWEG_LOG/test-$1.log status found seconds passed failed skipped mark=✓
  # Without an end it was ended from outside.
  read -r status seconds <"$THALWEG_LOG/test-$name.end" || { status=1 && seconds=0; }
  mapfile -t found < <("$THALWEG_VENV/bin/python" "$THALWEG_ROOT/scripts/test_results.py" "$THALWEG_RESULTS/$name" "$log")
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
    "$THALWEG_VENV/bin/python" "$THALWEG_ROOT/scripts/failed_lines.py" "$THALWEG_RESULTS/$name" "$log" | sed 's/^/  │ /'
    [[ -n ${found[1]:-} ]] || found[1]="$name ended with status $status; no test and no step says why"
    reasons+=("${found[@]:1}")
  fi
  summary+=("$line")
  total_passed=$((total_passed + passed))
  total_failed=$((total_failed + failed))
}

# Of all processors since the boot: jiffies of any work, and all.
processor_times() { awk '/^cpu /{idle = $5 + $6; for (i = 2; i <= 9; i++) all += $i; print all - idle, all}' /proc/stat; }

busy_percent() {
  local busy all
  read -r busy all < <(processor_times)
  echo "$(((busy - busy_at_start) * 100 / (all - all_at_start)))"
}

read -r busy_at_start all_at_start < <(processor_times)
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
mkdir -p "$THALWEG_LOG"
beside=() # suites that run on what processor time is left
together=()
foreground=()
for suite in "$@"; do
  rm -f "$THALWEG_LOG/test-$suite.end"
  case $suite in
    lint) beside+=("$suite") ;;
    backend | system)
      ((${#together[@]})) || foreground+=(together)
      together+=("$suite")
      ;;
    *) foreground+=("$suite") ;;
  esac
done
((${#foreground[@]})) || { foreground=("${beside[@]}") && beside=(); }
setsid --wait "$THALWEG_ROOT/scripts/beside.sh" "${beside[@]}" &
for suite in "${foreground[@]}"; do
  if [[ $suite == together ]]; then
    running=()
    for member in "${together[@]}"; do
      execute_suite "$member" &
      running+=($!)
    done
    wait "${running[@]}"
    for member in "${together[@]}"; do report_suite "$member"; done
  else
    execute_suite "$suite"
    report_suite "$suite"
  fi
done
wait
for suite in "${beside[@]}"; do
  report_suite "$suite"
done
if (($# > 1)); then
  printf '\n%s\n' "suites, $((SECONDS - started)) s in all; processors $(busy_percent) % busy"
  printf '%s\n' "the longest tests" "$("$THALWEG_VENV/bin/python" "$THALWEG_ROOT/scripts/longest_tests.py" "$THALWEG_RESULTS")" ""
  printf '%s\n' "${summary[@]}"
fi
# Last, because whoever keeps only the end of a log wants this.
((${#reasons[@]} == 0)) || printf '  %s\n' "${reasons[@]}"
echo "$total_passed passed, $total_failed failed"
((total_failed == 0))
