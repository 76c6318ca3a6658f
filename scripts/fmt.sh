#!/usr/bin/env bash
# Formats every source in place.
set -euo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps node builds; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
cd "$THALWEG_ROOT"
export THALWEG_LOCK=requirements-dev.lock

format_pages() { python3 scripts/lint/lines.py --fix; }
format_engine() { find engine/src engine/test \( -name '*.h' -o -name '*.cc' \) -print0 | xargs -0 clang-format-19 -i; }
format_backend() { cd backend && "$THALWEG_VENV/bin/ruff" check --fix --quiet . && "$THALWEG_VENV/bin/ruff" format .; }
format_console() { use_node && install_node_modules frontend && cd frontend && npm run --silent fmt; }

step "build venv" "check that the package index answers" build_venv
step "format pages" "break the lines that it names by hand" format_pages
step "format engine" "install clang-format-19" format_engine
step "format backend" "read the findings above" format_backend
step "format console" "read the findings above" format_console
