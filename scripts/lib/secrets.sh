# shellcheck shell=bash
# Random secrets of this stack, one file each, mode 0600. Sourced, never run.

# Prints the secret NAME, made on first use: 32 characters that need no quoting in conninfo, URL or SQL. secret.key is the
# control plane's encryption key: 32 bytes in URL-safe base64, as its library (Fernet) wants them.
secret() {
  local file=$THALWEG_SECRETS/$1
  if [[ ! -s $file ]]; then
    mkdir -p "$THALWEG_SECRETS"
    chmod 700 "$THALWEG_SECRETS"
    # A link never replaces: of two services that make it at once, one wins and both read the same.
    local new
    new=$(umask 077 && mktemp "$file.XXXXXX")
    if [[ $1 == secret.key ]]; then
      head -c 32 /dev/urandom | base64 | tr '+/' '-_' >"$new"
    else
      head -c 24 /dev/urandom | base64 | tr '+/' 'xy' >"$new"
    fi
    ln "$new" "$file" 2>/dev/null || true
    rm -f "$new"
  fi
  cat "$file"
}

secret_file() {
  secret "$1" >/dev/null
  printf '%s\n' "$THALWEG_SECRETS/$1"
}
