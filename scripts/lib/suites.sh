# shellcheck shell=bash
# The commands of each suite of 'make test'. Each gets a directory for its JUnit files. Sourced, never run.

THALWEG_RESULTS=$THALWEG_HOME/test-results

# execute_suite NAME : leaves its status and seconds beside its log.
execute_suite() {
  local name=$1 started=$SECONDS status=0
  rm -rf "${THALWEG_RESULTS:?}/$name"
  mkdir -p "$THALWEG_RESULTS/$name"
  (
    set -euo pipefail
    "suite_$name" "$THALWEG_RESULTS/$name"
  ) >"$THALWEG_LOG/test-$name.log" 2>&1 </dev/null
  status=$?
  echo "$status $((SECONDS - started))" >"$THALWEG_LOG/test-$name.end"
}

# Databases of tests are thousands of small files for seconds each: they lie in memory where it has room for them, and may
# hold programs.
keep_tests_in_memory() {
  local memory=/dev/shm room
  room=$(df --output=avail --block-size=1G "$memory" 2>/dev/null | tail -n 1) || room=0
  if ((room >= 6)) &&
    [[ ,$(findmnt --noheadings --output OPTIONS "$memory"), != *,noexec,* ]]; then
    export TMPDIR=$memory
  fi
}

suite_lint() { "$THALWEG_ROOT/scripts/lint.sh"; }

# Unit tests and corpora of one build tree.
run_ctest() {
  local tree=$1 results=$2
  mkdir -p "$results"
  keep_tests_in_memory
  GTEST_OUTPUT=xml:$results/ ctest --test-dir "$THALWEG_BUILD/$tree" --output-on-failure --parallel 3 --no-tests=error --timeout 900
}

suite_engine() {
  build_engine release
  build_server_libraries
  install_servers
  run_ctest release "$1"
}

# Structures that threads share without locks, under the thread sanitizer.
suite_races() {
  build_engine thread base_test queue_test
  local component
  for component in base queue; do
    GTEST_OUTPUT=xml:$1/$component.xml TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 "$THALWEG_BUILD/thread/${component}_test"
  done
}

# Every component's tests under both trees of sanitizers: too long for each change.
suite_sanitizers() {
  local tree status=0
  build_server_libraries
  for tree in address thread; do
    build_engine "$tree"
    run_ctest "$tree" "$1/$tree" || status=1
  done
  return "$status"
}

# Twelve seconds of libFuzzer for each target, from its corpus, one on each core. Its findings on the way stay in the
# build tree. An input may take a minute: the processors may have other work.
suite_fuzz() {
  local source target passed=0 failed=0 targets=() logs=$1
  while read -r source; do
    targets+=("$(basename "$source" .cc)")
  done < <(find "$THALWEG_ROOT/engine/src" -name '*_fuzz.cc')
  build_engine address "${targets[@]}"
  export -f fuzz_target
  export THALWEG_BUILD THALWEG_ROOT
  printf '%s\n' "${targets[@]}" | xargs -P "$THALWEG_JOBS" -I {} bash -c 'fuzz_target "$@"' fuzz_target {} "$logs" || true
  for target in "${targets[@]}"; do
    cat "$logs/$target.log"
    if [[ -e $logs/$target.passed ]]; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "✗ $target"
      grep -E 'ERROR|SUMMARY|#[0-9]+ .* in (thalweg|LLVMFuzzer)|Test unit written|^Base64' "$logs/$target.log" | tail -n 8 | sed 's/^/  │ /' || true
    fi
  done
  echo "totals: $passed passed, $failed failed"
  ((failed == 0))
}

# fuzz_target TARGET LOGS : its output in LOGS/TARGET.log, and LOGS/TARGET.passed where nothing was found.
fuzz_target() {
  local target=$1 logs=$2 found=$THALWEG_BUILD/address/found/$1
  mkdir -p "$found"
  "$(find "$THALWEG_BUILD/address" -name "$target" -type f -perm -u+x)" -max_total_time="${THALWEG_FUZZ_SECONDS:-12}" -timeout=60 \
    -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$found-" "$found" "$THALWEG_ROOT/engine/test/corpus/$target" \
    >"$logs/$target.log" 2>&1 && touch "$logs/$target.passed"
}

# The PostgreSQL servers of releases that the system does not have.
install_servers() {
  use_node
  install_node_modules "$THALWEG_ROOT/engine/test/servers"
}

# With the real engine where only that will do.
suite_backend() {
  export THALWEG_TEST_PORTS=${THALWEG_TEST_PORTS:-26000-31999} # other ones than the system's tests, which run beside these
  build_engine release thalwegd
  install_servers
  keep_tests_in_memory
  (export THALWEG_ENGINE=$THALWEG_BUILD/release/src/daemon/thalwegd
   cd "$THALWEG_ROOT/backend" && "$THALWEG_VENV/bin/pytest" -q -p no:cacheprovider --junitxml="$1/backend.xml")
}

suite_frontend() {
  use_node
  install_node_modules "$THALWEG_ROOT/frontend"
  (cd "$THALWEG_ROOT/frontend" && npx vitest run --reporter=default --reporter=junit --outputFile.junit="$1/frontend.xml")
  build_console
}

suite_system() {
  export THALWEG_TEST_PORTS=${THALWEG_TEST_PORTS:-20000-25999}
  build_engine release thalwegd
  install_servers
  build_server_libraries
  keep_tests_in_memory
  (cd "$THALWEG_ROOT/engine/test/system" && THALWEG_ENGINE=$THALWEG_BUILD/release/src/daemon/thalwegd \
    "$THALWEG_VENV/bin/pytest" -q -p no:cacheprovider --durations=10 --junitxml="$1/system.xml")
}

# A stack of its own beside the user's: other state, other ports.
suite_e2e() {
  use_node
  RESULTS=$1 "$THALWEG_ROOT/e2e/run.sh"
}
