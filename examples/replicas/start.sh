#!/bin/sh
# etcd, three API servers on it, and HAProxy in front of them, all on this machine. Ctrl-C ends them in order.
#
#   clients ---> HAProxy :8080 ---> watchmux serve :8081, :8082, :8083 ---> etcd :2379
#
# ETCD, WATCHMUX and HAPROXY name the commands. PORT and the ports below it may be set, and DATA, a folder that is kept.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin
PORT=${PORT:-8080}
ETCD_PORT=${ETCD_PORT:-2379}
ETCD_PEER_PORT=${ETCD_PEER_PORT:-2380}
REPLICA_PORTS=${REPLICA_PORTS:-"8081 8082 8083"}
METRICS_PORTS=${METRICS_PORTS:-"9081 9082 9083"}
RESOURCE=${RESOURCE:-orders.shop.example/v1=Order}

# Otherwise only a log would say so.
for each in "${ETCD:-etcd}" "${HAPROXY:-haproxy}"; do
  command -v "${each%% *}" > /dev/null || {
    echo "$each: not found" >&2
    exit 1
  }
done

if [ -n "${DATA:-}" ]; then data=$DATA; else data=$(mktemp -d); fi
replicas=''
balancer=''
etcd=''

# Ctrl-C reaches the whole group of processes. These have groups of their own, so that they end when they are told.
apart() {
  if command -v setsid > /dev/null; then exec setsid "$@"; fi
  exec "$@"
}

end() {
  trap '' INT TERM
  echo "ending"
  # They drain: the balancer still sends them what it has, and etcd answers.
  for group in "$replicas" "$balancer" "$etcd"; do
    for pid in $group; do kill -TERM "$pid" 2> /dev/null || true; done
    for pid in $group; do wait "$pid" 2> /dev/null || true; done
  done
  if [ -z "${DATA:-}" ]; then rm -rf "$data"; fi
}
trap 'exit 0' INT TERM
trap end EXIT

url="http://127.0.0.1:$ETCD_PORT"
peer="http://127.0.0.1:$ETCD_PEER_PORT"
apart ${ETCD:-etcd} --data-dir "$data/etcd" --listen-client-urls "$url" --advertise-client-urls "$url" \
  --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" \
  --auto-compaction-mode revision --auto-compaction-retention 20000 > "$data/etcd.log" 2>&1 &
etcd=$!

# The first attempts wait until etcd is there.
number=0
for port in $REPLICA_PORTS; do
  number=$((number + 1))
  metrics=$(echo "$METRICS_PORTS" | cut -d ' ' -f "$number")
  apart ${WATCHMUX:-node "$here/../../dist/cli/main.js"} serve --port "$port" --metrics "$metrics" --etcd "$url" --resource "$RESOURCE" \
    --client-address x-forwarded-for --drain 15 --drain-delay 3 --log json > "$data/replica-$number.out" 2> "$data/replica-$number.log" &
  replicas="$replicas $!"
  echo "replica $number: http://127.0.0.1:$port, metrics http://127.0.0.1:$metrics/metrics, process $!"
  eval "export REPLICA_$number=127.0.0.1:$port"
done

export PORT BIND=127.0.0.1
apart ${HAPROXY:-haproxy} -db -f "$here/haproxy.cfg" > "$data/haproxy.log" 2>&1 &
balancer=$!

echo "balancer: http://127.0.0.1:$PORT, process $balancer"
echo "logs: $data"
wait "$balancer" || {
  cat "$data/haproxy.log" >&2
  exit 1
}
