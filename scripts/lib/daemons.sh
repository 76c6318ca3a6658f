# shellcheck shell=bash
# Background processes with pid files that can tell a process of ours from a stranger with its number. Sourced.

# Clock ticks between boot and the start of process PID: with the number, it names one process for ever.
process_start() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  stat=${stat##*) }
  cut -d' ' -f20 <<<"$stat"
}

# Prints the pid of daemon NAME when it runs and is ours.
daemon_pid() {
  local pid started
  read -r pid started 2>/dev/null <"$THALWEG_RUN/$1.pid" || return 1
  # Without a start the process had ended before it could be read: nothing to compare with.
  [[ -n $started && $(process_start "$pid") == "$started" ]] || return 1
  [[ $(cut -d' ' -f1 <<<"$(sed 's/.*) //' "/proc/$pid/stat")") != Z ]] || return 1
  printf '%s\n' "$pid"
}

# start_daemon NAME COMMAND... : survives the shell; output goes to the service's log.
start_daemon() {
  local name=$1 pid log=$THALWEG_LOG/service-$1.log
  shift
  if daemon_pid "$name" >/dev/null; then
    echo "note: already running"
    return 0
  fi
  mkdir -p "$THALWEG_RUN" "$THALWEG_LOG"
  # Messages of databases quote rows: the log is for whoever started this, on a host with other users too.
  touch "$log" && chmod 600 "$log"
  printf '%(%F %T)T starting %s\n' -1 "$name" >>"$log"
  setsid "$@" >>"$log" 2>&1 </dev/null &
  pid=$!
  sleep 0.2
  printf '%s %s\n' "$pid" "$(process_start "$pid")" >"$THALWEG_RUN/$name.pid"
  if ! daemon_pid "$name" >/dev/null; then
    echo "$name ended at once; the end of $log:"
    tail -n 15 "$log"
    return 1
  fi
}

# wait_for_port PORT : until a daemon can listen on it. A connection from this port that has ended keeps it for a minute
# (TIME-WAIT, RFC 9293 3.6.1), and the kernel hands out most of our ports to connections.
wait_for_port() {
  python3 - "$THALWEG_LISTEN" "$1" <<'PYTHON'
import errno, socket, sys, time

address, end = (sys.argv[1], int(sys.argv[2])), time.monotonic() + 65
while True:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
            break
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    with socket.socket() as probe:
        if probe.connect_ex(address) == 0:
            sys.exit(f"another process listens on port {address[1]}")
    if time.monotonic() > end:
        sys.exit(f"a connection of another process holds port {address[1]}")
    time.sleep(0.5)
PYTHON
}

# True when the service that NAME's supervisor runs has ended three times since it was started. Once may be chance: the kernel
# gives a port that was free a moment ago to a connection.
keeps_ending() { awk '/ starting / { ends = 0 } / supervise: / { ++ends } END { exit ends < 3 }' "$THALWEG_LOG/service-$1.log"; }

# check_daemon NAME SECONDS FRESH COMMAND... : waits until COMMAND succeeds; gives up at once when the supervisor has ended, or
# when a fresh service keeps ending: what runs again and again without coming up says why in its log.
check_daemon() {
  local name=$1 end=$((SECONDS + $2)) fresh=$3
  shift 3
  until "$@" >/dev/null 2>&1; do
    if ! daemon_pid "$name" >/dev/null || ((SECONDS >= end)) || { [[ -n $fresh ]] && keeps_ending "$name"; }; then
      echo "$name does not answer; the end of $THALWEG_LOG/service-$name.log:"
      tail -n 15 "$THALWEG_LOG/service-$name.log"
      [[ -z $fresh ]] || stop_daemon "$name" 10
      return 1
    fi
    sleep 0.2
  done
}

# Prints the pid of the service itself, below its supervisor; nothing while it waits to start again.
service_pid() {
  local supervisor
  supervisor=$(daemon_pid "$1") && pgrep --parent "$supervisor" --list-name | awk '$2 != "sleep" { print $1 }'
}

# stop_daemon NAME SECONDS : SIGTERM, and SIGKILL to its process group after SECONDS.
stop_daemon() {
  local name=$1 end=$((SECONDS + $2)) pid
  if ! pid=$(daemon_pid "$name"); then
    rm -f "$THALWEG_RUN/$name.pid"
    echo "note: was not running"
    return 0
  fi
  kill -TERM "$pid"
  while daemon_pid "$name" >/dev/null; do
    if ((SECONDS >= end)); then
      kill -KILL -- "-$pid"
      echo "note: killed after $2 s"
      break
    fi
    sleep 0.1
  done
  rm -f "$THALWEG_RUN/$name.pid"
}
