# shellcheck shell=bash
# The user of each service. Started by root, each service has an unprivileged user; else everything is the caller's. Sourced, never run.

# Prints the user of service NAME. Debian's packages bring those of PostgreSQL and Redis.
service_user() {
  if ((EUID != 0)); then
    id -un
    return
  fi
  case $1 in
    api | collector | engine) echo "thalweg-$1" ;;
    redis) echo redis ;;
    *) echo "$THALWEG_PG_USER" ;;
  esac
}

# Makes the users that are missing. In containers nothing is root, so nothing is made.
make_service_users() {
  ((EUID == 0)) || return 0
  local name user
  for name in api collector engine; do
    user=$(service_user "$name")
    id "$user" >/dev/null 2>&1 && continue
    groupadd --system --force "$user"
    useradd --system --gid "$user" --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin "$user"
    echo "note: made the user $user"
  done
}

# becoming USER : sets the array 'become' to the words before a command that run it without root's rights.
becoming() {
  become=()
  ((EUID != 0)) ||
    become=(env HOME=/ setpriv --reuid "$1" --regid "$(id -g "$1")" --init-groups --inh-caps=-all --no-new-privs --)
}

as_user() {
  local become
  becoming "$1"
  shift
  "${become[@]}" "$@"
}

# PostgreSQL refuses to run as root.
as_pg() { as_user "$THALWEG_PG_USER" "$@"; }

# Prints where the services keep their data: THALWEG_HOME, or a directory under /var/lib/thalweg where their users cannot
# enter that (a checkout under /root, say).
services_directory() {
  if ((EUID != 0)) || as_user nobody test -x "$THALWEG_HOME"; then
    printf '%s\n' "$THALWEG_HOME"
  else
    printf '/var/lib/thalweg/%s\n' "$(printf '%s' "$THALWEG_HOME" | sha256sum | cut -c1-12)"
  fi
}

# own_directory SERVICE DIRECTORY : makes it, for that service's user alone.
own_directory() {
  mkdir -p "$2"
  ((EUID != 0)) || chown -R "$(service_user "$1"):" "$2"
  chmod 700 "$2"
}

# hand_over SERVICE SECRET : prints a file with the secret that only the service's user can read. Root's own copy stays where
# it is; without root there is one user, and one file.
hand_over() {
  if ((EUID != 0)); then
    secret_file "$2"
    return
  fi
  hand_over_file "$1" "$(secret_file "$2")" "$2"
}

# hand_over_file SERVICE FILE NAME : the same with any file that the caller can read.
hand_over_file() {
  local directory
  if ((EUID != 0)); then
    printf '%s\n' "$2"
    return
  fi
  directory=$(services_directory)/credentials/$1
  mkdir -p "$directory"
  install -m 0400 -o "$(service_user "$1")" "$2" "$directory/$3"
  printf '%s\n' "$directory/$3"
}

# Prints where the services' users find the code: the checkout, or a copy of what runs where they cannot read that.
code_directory() {
  if ((EUID != 0)) || as_user nobody test -r "$THALWEG_ROOT/scripts/settings.sh" -a -x "$THALWEG_VENV/bin/python"; then
    printf '%s\n' "$THALWEG_ROOT"
  else
    printf '%s\n' "$(services_directory)/code"
  fi
}

# Prints where the built help lies, in the copy of the code where there is one.
help_directory() {
  local code
  code=$(code_directory)
  if [[ $code == "$THALWEG_ROOT" ]]; then
    printf '%s\n' "$THALWEG_BUILD/help"
  else
    printf '%s\n' "$code/build/help"
  fi
}

# Renews that copy.
copy_code() {
  local directory
  directory=$(code_directory)
  if [[ $directory == "$THALWEG_ROOT" ]]; then
    echo "note: runs from the checkout"
    return 0
  fi
  rm -rf "$directory.new"
  mkdir -p "$directory.new"
  (cd "$THALWEG_ROOT" &&
    cp -a --parents -t "$directory.new" scripts backend/thalweg backend/pyproject.toml migrations engine/contract frontend/dist)
  cp -a "$THALWEG_VENV" "$directory.new/.venv"
  cp -a "$THALWEG_ENGINE_BINARY" "$directory.new/thalwegd"
  mkdir "$directory.new/build"
  [[ ! -d $THALWEG_BUILD/help ]] || cp -a "$THALWEG_BUILD/help" "$directory.new/build/help"
  chmod -R a+rX "$directory.new"
  rm -rf "$directory"
  mv "$directory.new" "$directory"
  "$directory/.venv/bin/python" "$directory/scripts/link_backend.py" "$directory/backend"
  echo "note: their users cannot read the checkout; a copy is in $directory"
}
