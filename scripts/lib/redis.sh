# shellcheck shell=bash
# Redis: the live bus. Nothing in it must survive, so it writes nothing to disk. Sourced, never run.

redis_directory() { printf '%s\n' "$(services_directory)/redis"; }

write_redis_configuration() {
  local directory
  directory=$(redis_directory)
  own_directory redis "$directory"
  # As the user who owns the directory: whatever that user had put in the file's place, root would overwrite.
  as_user "$(service_user redis)" tee "$directory/redis.conf" >/dev/null <<CONF
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
}

redis_answers() {
  [[ $(REDISCLI_AUTH=$(secret redis) redis-cli -h "$THALWEG_REDIS_HOST" -p "$THALWEG_REDIS_PORT" ping) == PONG ]]
}
