#!/usr/bin/env bash
# Prints the figures of docs/performance.md anew: starts Kafka 4.4 and Weir on folders of their own, loads both turn
# about with Kafka's tools and with bench, and ends both. Needs ../shared/peers beside the checkout, a JDK and Maven,
# and a machine that does nothing else. ROUNDS=3 SCALE=0.5 JAVA='produce-1k ...' GO='fan-out ...' choose.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
peers=../shared/peers
[ -x "$peers/kafka" ] || { echo "bench: $peers/kafka is not there: the table needs the real Kafka beside the checkout" >&2; exit 1; }
rounds=${ROUNDS:-3} scale=${SCALE:-0.5}
work=$(mktemp -d)
weir=
finish() {
  "$peers/kafka" down -d "$work/kafka" >/dev/null 2>&1 || true
  [ -z "$weir" ] || { kill "$weir" && wait "$weir" || true; }
  rm -rf "$work"
}
trap finish EXIT
go build -trimpath -o "$work/weir" ./cmd/weir
go build -trimpath -o "$work/bench" ./bench
"$peers/kafka" setup >&2
"$peers/kafka" up -p 19092 -d "$work/kafka" >&2
# the script that starts Kafka sets the delay to 0 as well
"$work/weir" serve --data-dir "$work/weir-data" --override listeners=PLAINTEXT://127.0.0.1:19292 \
  --override weir.http.listener= --override group.initial.rebalance.delay.ms=0 >"$work/weir.log" 2>&1 &
weir=$!
for _ in $(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/19292) 2>/dev/null && break; sleep 0.05; done
targets=(-t "kafka=127.0.0.1:19092@$("$peers/kafka" pids -d "$work/kafka" | paste -sd,)" -t "weir=127.0.0.1:19292@$weir")
if [ "${JAVA-all}" != none ]; then
  # shellcheck disable=SC2086
  "$peers/bench" "${targets[@]}" -r "$rounds" -s "$scale" ${JAVA:-}
fi
if [ "${GO-all}" != none ]; then
  # shellcheck disable=SC2086
  "$work/bench" "${targets[@]}" -r "$rounds" -s "$scale" ${GO:-}
fi
