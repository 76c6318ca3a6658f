#!/usr/bin/env bash
# Makes the secrets of a stack in containers, and gives each service its own: one volume for each service, mounted here under
# secrets-of/SERVICE and there as its secrets directory. Again: makes what is missing.
set -euo pipefail
source "$(dirname "$0")/settings.sh"
source "$THALWEG_ROOT/scripts/lib/secrets.sh"

give() {
  local directory=$THALWEG_HOME/secrets-of/$1 name
  shift
  for name in "$@"; do
    (umask 077 && secret "$name" >"$directory/$name.new")
    mv "$directory/$name.new" "$directory/$name"
  done
}

give store store-superuser
give redis redis
give setup store-superuser store-thalweg redis secret.key engine-token source-thalweg destination-thalweg \
  source-superuser destination-superuser
give api store-thalweg redis secret.key
give collector store-thalweg redis secret.key
give engine engine-token
give demo-source source-superuser
give demo-destination destination-superuser
give demo-data source-superuser destination-superuser source-shop source-thalweg destination-thalweg
give demo-relay destination-thalweg
give load source-shop
