# shellcheck shell=bash
# Steps: one line each when all is well; the log's end and the cure when not. Sourced, never run.

# step NAME CURE COMMAND [ARGUMENT...]
# Runs COMMAND (a program or a function) with its output in $THALWEG_LOG/NAME.log. Exits the script when it fails. A command
# that knows a better cure prints 'cure: ...'.
step() {
  local name=$1 cure=$2 log started seconds status stops_on_failure=${-//[^e]/}
  shift 2
  mkdir -p "$THALWEG_LOG"
  log=$THALWEG_LOG/${name//[ \/]/-}.log
  started=$SECONDS
  set +e
  (
    set -euo pipefail
    "$@"
  ) >"$log" 2>&1 </dev/null
  status=$?
  [[ -z $stops_on_failure ]] || set -e
  seconds=$((SECONDS - started))
  if ((status == 0)); then
    printf '✓ %-28s %4ds%s\n' "$name" "$seconds" "$(step_note "$log")"
    return 0
  fi
  printf '✗ %-28s %4ds  failed with status %d\n' "$name" "$seconds" "$status"
  printf '  ── last lines of %s\n' "$log"
  tail -n 25 "$log" | sed 's/^/  │ /'
  printf '  ── cure: %s\n' "$(step_word cure "$log" "$cure")"
  exit "$status"
}

# A command says something worth its line ("already running") by printing 'note: ...' as its last such line.
step_note() {
  local note
  note=$(step_word note "$1" "")
  [[ -z $note ]] || printf '  %s' "$note"
}

# step_word WORD LOG ELSE : what follows 'WORD: ' on the last line that begins so.
step_word() {
  local line
  line=$(grep -a "^$1: " "$2" | tail -n 1) || line="$1: $3"
  printf '%s' "${line#"$1: "}"
}

# Runs a command as root: directly, or through sudo.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "root rights are needed for: $*" >&2
    return 1
  fi
}

# guarded "$0" "$@" : runs the calling script again below a guard, which ends with it whatever it has started, however it
# ends: scripts/guard.py. Returns below one.
guarded() {
  if [[ -z ${THALWEG_GUARDED:-} ]]; then
    export THALWEG_GUARDED=1
    exec python3 "$THALWEG_ROOT/scripts/guard.py" "$@"
  fi
}

# only_one "$0" "$@" : runs the calling script once at a time for each THALWEG_HOME. The programs that it starts do not
# hold the lock.
only_one() {
  if [[ ${THALWEG_LOCKED:-} != "$THALWEG_HOME" ]]; then
    mkdir -p "$THALWEG_HOME"
    export THALWEG_LOCKED=$THALWEG_HOME
    local status=0
    flock --nonblock --close --conflict-exit-code 75 "$THALWEG_HOME/.lock" "$@" || status=$?
    ((status != 75)) || echo "another 'make up' or 'make down' runs for $THALWEG_HOME; wait for it" >&2
    exit "$status"
  fi
}

# wait_until SECONDS WHAT COMMAND... : polls until the command succeeds.
wait_until() {
  local limit=$1 what=$2 end
  shift 2
  end=$((SECONDS + limit))
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS >= end)); then
      echo "gave up after $limit s: $what"
      "$@" || true
      return 1
    fi
    sleep 0.2
  done
}
