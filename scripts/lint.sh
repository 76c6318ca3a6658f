#!/usr/bin/env bash
# Every static check, one line each; all of them run, also after a failure. Called by 'make lint' through test.sh.
set -uo pipefail
source "$(dirname "$0")/settings.sh"
source "$THALWEG_ROOT/scripts/lib/node.sh"
source "$THALWEG_ROOT/scripts/lib/builds.sh"
cd "$THALWEG_ROOT" || exit 1
python=$THALWEG_VENV/bin/python
passed=0
failed=0

check() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1 </dev/null); then
    printf '  ✓ %s\n' "$name"
    passed=$((passed + 1))
  else
    printf '  ✗ %s\n%s\n' "$name" "$(sed 's/^/    │ /' <<<"$output" | tail -n 40)"
    failed=$((failed + 1))
  fi
}

engine_format() { find engine/src engine/test \( -name '*.h' -o -name '*.cc' \) -print0 | xargs -0 clang-format-19 --dry-run -Werror; }
shell_scripts() { find scripts .ci e2e -path '*/node_modules' -prune -o -name '*.sh' -print; echo .ci/run; }
shell_check() { shell_scripts | xargs shellcheck --source-path=SCRIPTDIR --external-sources --severity=warning; }
in_backend() { (cd backend && "$@"); }
system_types() { MYPYPATH=engine/test/system:engine/bench:scripts "$THALWEG_VENV/bin/mypy" --strict -p harness -p bench -m guard -m kept_sessions -m packaged_servers -m pooler; }
console_lint() { use_node && install_node_modules frontend && (cd frontend && npm run --silent lint); }
journeys_lint() { use_node && install_node_modules e2e && (cd e2e && npm run --silent lint); }

check "engine: layers" "$python" scripts/lint/engine_layers.py
check "engine: format" engine_format
check "everywhere: tidy" "$python" scripts/lint/tidy.py
check "everywhere: error codes" "$python" scripts/lint/error_codes.py
check "everywhere: component states" "$python" scripts/lint/component_states.py
check "everywhere: component numbers" "$python" scripts/lint/component_numbers.py
check "backend: states" "$python" scripts/lint/states.py
check "backend: outside work" "$python" scripts/lint/outside.py
check "everywhere: version" "$python" scripts/lint/version.py
check "backend: ruff" in_backend "$THALWEG_VENV/bin/ruff" check .
check "backend: format" in_backend "$THALWEG_VENV/bin/ruff" format --check .
check "backend: mypy" in_backend "$THALWEG_VENV/bin/mypy" thalweg
check "backend: layers" in_backend "$THALWEG_VENV/bin/lint-imports"
check "console: biome, tsc, layers" console_lint
check "journeys: biome, tsc" journeys_lint
check "scripts: ruff" "$THALWEG_VENV/bin/ruff" check scripts engine
check "scripts: mypy" system_types
check "scripts: shellcheck" shell_check
check "docs: reference pages" scripts/docs.sh --check
check "docs: links, named files" "$python" scripts/lint/links.py
check "docs: commands" "$python" scripts/lint/commands.py
check "docs: READMEs" "$python" scripts/lint/readmes.py
check "docs: lines end at 120" "$python" scripts/lint/lines.py
check "docs: help" build_help
check "deploy: compose, Dockerfiles" "$python" scripts/lint/deploy.py

echo "totals: $passed passed, $failed failed"
((failed == 0))
