# shellcheck shell=bash
# Redis: the live bus. Nothing in it must survive, so it writes nothing to disk. Sourced, never run.

redis_directory() { printf '%s\n' "$(services_directory)/redis"; }

write_redis_configuration() {
  local directory
  directory=$(redis_directory)
  mkdir -p "$directory"
  (
    umask 077
    cat >"$directory/redis.conf" <<CONF
bind $THALWEG_LISTEN
port $THALWEG_REDIS_PORT
dir $directory
daemonize no
save ""
appendonly no
maxmemory 256mb
maxmemory-policy volatile-lru
requirepass $(secret redis)
CONF
  )
  own_directory redis "$directory"
}

redis_answers() {
  [[ $(REDISCLI_AUTH=$(secret redis) redis-cli -h "$THALWEG_REDIS_HOST" -p "$THALWEG_REDIS_PORT" ping) == PONG ]]
}
