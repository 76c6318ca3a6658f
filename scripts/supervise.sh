#!/usr/bin/env bash
# Runs a service and starts it again when it ends by itself: after one second, then after twice as long each time, up to 30 s;
# what had run for a minute begins at one second again. TERM or INT ends the service with SIGNAL, and then this. A service
# whose supervisor dies gets SIGNAL from the kernel.
# usage: scripts/supervise.sh SIGNAL COMMAND...
set -uo pipefail
signal=$1
shift
pause=1
ending=
child=

pass_on() { [[ -z $child ]] || kill -s "$signal" "$child" 2>/dev/null; }
trap 'ending=1; pass_on' TERM INT

run() {
  "$@" &
  child=$!
  # A signal that came before there was a child was for this one.
  [[ -z $ending ]] || pass_on
  # A signal interrupts wait; the child may need its time.
  while kill -0 "$child" 2>/dev/null; do
    wait "$child"
    status=$?
  done
  child=
}

while [[ -z $ending ]]; do
  started=$SECONDS
  run setpriv --pdeathsig "$signal" -- "$@"
  [[ -z $ending ]] || break
  ((SECONDS - started < 60)) || pause=1
  printf '%(%F %T)T supervise: %s ended with status %d; starts again in %d s\n' -1 "${1##*/}" "$status" "$pause"
  signal=TERM run sleep "$pause"
  pause=$((pause < 15 ? pause * 2 : 30))
done
