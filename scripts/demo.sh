#!/usr/bin/env bash
# Makes the demo stream again after it was deleted: empties its tables at the demo's destination, then copies.
set -euo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps secrets users clusters redis daemons demo services; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
only_one "$0" "$@"

if run_rest has-stream "$DEMO_STREAM"; then
  echo "the stream '$DEMO_STREAM' is there already; delete it first" >&2
  exit 1
fi
step "empty demo destination" "run 'make up' first: the demo's databases must run" drop_demo_copy
step "make demo stream" "open the console: it names the reason and the cure" make_demo_stream
