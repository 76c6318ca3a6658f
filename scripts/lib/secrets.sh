# shellcheck shell=bash
# Random secrets of this stack, one file each, mode 0600. Sourced, never run.

# Prints the secret NAME, made on first use: 32 characters that need no quoting in conninfo, URL or SQL.
secret() {
  local file=$THALWEG_SECRETS/$1
  if [[ ! -s $file ]]; then
    mkdir -p "$THALWEG_SECRETS"
    chmod 700 "$THALWEG_SECRETS"
    (umask 077 && head -c 24 /dev/urandom | base64 | tr '+/' 'xy' >"$file.new" && mv -n "$file.new" "$file")
  fi
  cat "$file"
}

secret_file() {
  secret "$1" >/dev/null
  printf '%s\n' "$THALWEG_SECRETS/$1"
}
