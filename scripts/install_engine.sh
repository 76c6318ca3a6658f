#!/usr/bin/env bash
# Makes this host one of an engine: packages, user, control token, certificate of the control API, addresses, unit. It
# keeps anything that is there already, so it runs again after an upgrade. It starts nothing. Runs as root from
# /opt/thalweg, where engine_bundle.sh's file was unpacked. usage: /opt/thalweg/scripts/install_engine.sh HOST
#   HOST  address or name of this host, as the control plane and other engines reach it
set -euo pipefail
source "$(dirname "$0")/settings.sh"
host=${1:-}
configuration=/etc/thalweg
units=/etc/systemd/system
if (($# != 1)) || [[ ! $host =~ ^[A-Za-z0-9.:-]+$ ]]; then
  sed -n '2,5p' "$0" >&2
  exit 2
fi
if [[ $THALWEG_ROOT != /opt/thalweg || ! -x /opt/thalweg/bin/thalwegd ]]; then
  echo "Unpack the file of scripts/engine_bundle.sh at /opt/thalweg, and run this from there." >&2
  exit 1
fi

"$THALWEG_ROOT/scripts/install.sh" engine
command -v openssl >/dev/null || "$THALWEG_ROOT/scripts/install.sh" system
/opt/thalweg/bin/thalwegd --version
id thalweg-engine >/dev/null 2>&1 ||
  useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin thalweg-engine
install -d -m 0700 "$configuration"
umask 077
[[ -s $configuration/engine-token ]] || openssl rand -hex 24 >"$configuration/engine-token"

# A name says nothing of the address to listen at: then all of this host's, and 'thalweg engines address' tells the name.
case $host in
  *:*) name=IP:$host listen=[$host] ;;
  *[!0-9.]*) name=DNS:$host listen=0.0.0.0 ;;
  *) name=IP:$host listen=$host ;;
esac
# Its own authority. A site with an authority puts a certificate for HOST and its key here before, or later in their place.
if [[ ! -s $configuration/engine-tls.crt ]]; then
  said=$(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 825 -subj "/CN=thalweg-engine" \
    -addext "subjectAltName=$name" -keyout "$configuration/engine-tls.key" -out "$configuration/engine-tls.crt" 2>&1) ||
    { printf '%s\n' "$said" "No certificate can be made for '$host': give an address or a name, without a port." >&2; exit 1; }
fi
[[ -s $configuration/engine.env ]] ||
  printf '%s\n' "THALWEG_ENGINE_LISTEN=$listen:8643" "THALWEG_PROPAGATION_LISTEN=$listen:8644" >"$configuration/engine.env"

umask 022
install -m 0644 "$THALWEG_ROOT/deploy/systemd/thalweg-engine.service" "$units/"
install -D -m 0644 "$THALWEG_ROOT/deploy/systemd/thalweg-engine-tls.conf" "$units/thalweg-engine.service.d/tls.conf"
echo "installed: $(tr '\n' ' ' <"$configuration/engine.env")"
