# shellcheck shell=bash
# Every port, path and size that the scripts use. Sourced, never run.
# A value comes from the environment, else from settings.env under THALWEG_HOME, else from here. Any setting of the services
# (backend/thalweg/kernel/settings.py) may stand in settings.env.

# With it every process of Python compiles all of its modules anew: seconds for each.
unset PYTHONDONTWRITEBYTECODE

THALWEG_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
THALWEG_HOME=${THALWEG_HOME:-$THALWEG_ROOT/.thalweg}

# Names that the file sets: services.sh hands them to the services, too.
THALWEG_SETTINGS_OF_FILE=()
load_settings_file() {
  local file=$THALWEG_HOME/settings.env line name
  [[ -f $file ]] || return 0
  while IFS= read -r line || [[ -n $line ]]; do
    [[ $line =~ ^[[:space:]]*(#.*)?$ ]] && continue
    if [[ ! $line =~ ^(THALWEG_[A-Z0-9_]+)=(.*)$ ]]; then
      echo "$file: cannot read '${line%%=*}'. Write THALWEG_NAME=value: no spaces around '=', no quotes, no 'export'." >&2
      exit 2
    fi
    if [[ ${BASH_REMATCH[2]} == *[[:space:]]#* ]]; then
      echo "$file: ${BASH_REMATCH[1]} has a comment behind its value. Give the comment a line of its own." >&2
      exit 2
    fi
    name=${BASH_REMATCH[1]}
    [[ -n ${!name:-} ]] || printf -v "$name" '%s' "${BASH_REMATCH[2]}"
    THALWEG_SETTINGS_OF_FILE+=("$name")
  done <"$file"
}
load_settings_file

# Shifts every default port: a second stack beside the first has its own THALWEG_HOME and its own offset.
THALWEG_PORT_OFFSET=${THALWEG_PORT_OFFSET:-0}
THALWEG_STORE_PORT=${THALWEG_STORE_PORT:-$((55430 + THALWEG_PORT_OFFSET))}
THALWEG_SOURCE_PORT=${THALWEG_SOURCE_PORT:-$((55431 + THALWEG_PORT_OFFSET))}
THALWEG_DESTINATION_PORT=${THALWEG_DESTINATION_PORT:-$((55432 + THALWEG_PORT_OFFSET))}
THALWEG_RELAY_PORT=${THALWEG_RELAY_PORT:-$((55433 + THALWEG_PORT_OFFSET))}
THALWEG_REDIS_PORT=${THALWEG_REDIS_PORT:-$((56379 + THALWEG_PORT_OFFSET))}
THALWEG_API_PORT=${THALWEG_API_PORT:-$((8642 + THALWEG_PORT_OFFSET))}
THALWEG_ENGINE_PORT=${THALWEG_ENGINE_PORT:-$((8643 + THALWEG_PORT_OFFSET))}
THALWEG_PROPAGATION_PORT=${THALWEG_PROPAGATION_PORT:-$((8644 + THALWEG_PORT_OFFSET))}

# Where the services listen and where the others find them. Containers set both; everything else stays on loopback.
THALWEG_LISTEN=${THALWEG_LISTEN:-127.0.0.1}
# Where the engine takes other engines' changes; its control API stays where THALWEG_LISTEN says.
THALWEG_PROPAGATION_LISTEN=${THALWEG_PROPAGATION_LISTEN:-$THALWEG_LISTEN}
THALWEG_STORE_HOST=${THALWEG_STORE_HOST:-127.0.0.1}
THALWEG_SOURCE_HOST=${THALWEG_SOURCE_HOST:-127.0.0.1}
THALWEG_DESTINATION_HOST=${THALWEG_DESTINATION_HOST:-127.0.0.1}
THALWEG_RELAY_HOST=${THALWEG_RELAY_HOST:-127.0.0.1}
THALWEG_REDIS_HOST=${THALWEG_REDIS_HOST:-127.0.0.1}
THALWEG_API_HOST=${THALWEG_API_HOST:-127.0.0.1}
THALWEG_ENGINE_HOST=${THALWEG_ENGINE_HOST:-127.0.0.1}

# The demo: pgbench scale (100 000 accounts each), transactions a second, connections. 'none' makes no demo stream.
THALWEG_DEMO=${THALWEG_DEMO:-pgbench}
THALWEG_DEMO_SCALE=${THALWEG_DEMO_SCALE:-5}
THALWEG_DEMO_RATE=${THALWEG_DEMO_RATE:-100}
THALWEG_DEMO_CLIENTS=${THALWEG_DEMO_CLIENTS:-2}

# Builds are shared by every stack of a checkout.
THALWEG_BUILD=${THALWEG_BUILD:-$THALWEG_ROOT/build}
THALWEG_VENV=${THALWEG_VENV:-$THALWEG_ROOT/.venv}
THALWEG_JOBS=${THALWEG_JOBS:-$(nproc)}
THALWEG_LOG=${THALWEG_LOG:-$THALWEG_HOME/log}
THALWEG_RUN=${THALWEG_RUN:-$THALWEG_HOME/run}
THALWEG_SECRETS=${THALWEG_SECRETS:-$THALWEG_HOME/secrets}

# The newest PostgreSQL server that is installed; install.sh brings 15 where there is none.
newest_postgresql() {
  local bin
  for bin in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort --version-sort --reverse); do
    [[ -x $bin/initdb ]] && { printf '%s\n' "$bin"; return; }
  done
  printf '/usr/lib/postgresql/15/bin\n'
}
THALWEG_PG_BIN=${THALWEG_PG_BIN:-$(newest_postgresql)}

# The unprivileged user that runs PostgreSQL when the scripts run as root.
THALWEG_PG_USER=${THALWEG_PG_USER:-postgres}

export THALWEG_ROOT THALWEG_HOME
