# shellcheck shell=bash
# Redis: the live bus. Nothing in it must survive, so it writes nothing to disk. Sourced, never run.

write_redis_configuration() {
  mkdir -p "$THALWEG_HOME/redis"
  (
    umask 077
    cat >"$THALWEG_HOME/redis/redis.conf" <<CONF
bind $THALWEG_LISTEN
port $THALWEG_REDIS_PORT
dir $THALWEG_HOME/redis
daemonize no
save ""
appendonly no
maxmemory 256mb
maxmemory-policy volatile-lru
requirepass $(secret redis)
CONF
  )
}

redis_answers() {
  [[ $(REDISCLI_AUTH=$(secret redis) redis-cli -h "$THALWEG_REDIS_HOST" -p "$THALWEG_REDIS_PORT" ping) == PONG ]]
}

start_redis() {
  write_redis_configuration
  daemon_pid redis >/dev/null || wait_for_port "$THALWEG_REDIS_PORT"
  start_daemon redis redis-server "$THALWEG_HOME/redis/redis.conf"
  check_daemon redis 15 redis_answers
}
