"""aiokafka as judge: aiokafka_judge.py BOOTSTRAP PREFIX, or, as a member of a group, BOOTSTRAP member GROUP TOPIC."""
import asyncio
import os
import signal
import sys
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidPartitionsError
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from judge import CODECS, HEADERS, NULLS, PER_ROUND, failed, passed, value

boot, prefix = sys.argv[1], sys.argv[2]
admin = None


async def check(name, f):
    try:
        await f()
        passed(name)
    except Exception as e:
        failed(name, e)


def codes(response):
    """The error codes of an admin answer, by name: aiokafka hands over the protocol's own rows."""
    rows = getattr(response, "topic_errors", None) or getattr(response, "topic_error_codes", None)
    return {row[0]: row[1] for row in rows}


async def eventually(seconds, ok, what="not in time"):
    end = time.time() + seconds
    while not await ok():
        assert time.time() < end, what
        await asyncio.sleep(0.05)


async def consumer(group=None, *topics, **conf):
    c = AIOKafkaConsumer(*topics, bootstrap_servers=boot, group_id=group, auto_offset_reset="earliest", **{"enable_auto_commit": False, "session_timeout_ms": 6000, "heartbeat_interval_ms": 500, "fetch_max_wait_ms": 200, **conf})
    await c.start()
    return c


async def member(group, topic):
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    how = StickyPartitionAssignor if os.environ.get("JUDGE_STRATEGY") == "sticky" else RangePartitionAssignor
    c = await consumer(group, topic, enable_auto_commit=True, auto_commit_interval_ms=200, partition_assignment_strategy=[how], rebalance_timeout_ms=10000)
    while not stop.is_set():
        for records in (await c.getmany(timeout_ms=100)).values():
            for r in records:
                print(r.value.decode(), flush=True)
    await c.stop()


async def topic(name, partitions=1):
    name = f"{prefix}-{name}"
    got = codes(await admin.create_topics([NewTopic(name, partitions, 1)]))
    assert got == {name: 0}, got
    return name


async def produce(to, p, n, **conf):
    async with AIOKafkaProducer(bootstrap_servers=boot, linger_ms=10, **conf) as producer:
        futures = [await producer.send(to, key=f"k{i}".encode(), value=value(p, i)) for i in range(n)]
        await producer.flush()
        return [r.offset if (r := await f) else None for f in futures]


async def read(to, n, partitions=1):
    c = await consumer()
    tps = [TopicPartition(to, p) for p in range(partitions)]
    c.assign(tps)
    await c.seek_to_beginning(*tps)
    out, end = [], time.time() + 30
    while len(out) < n and time.time() < end:
        for records in (await c.getmany(timeout_ms=300)).values():
            out += records
    await c.stop()
    assert len(out) == n, f"read {len(out)} of {n}"
    return out


async def codec(name):
    to, kind = f"{prefix}-{name}", None if name == "none" else name
    for acks in (0, 1, "all"):
        await check(f"produce {name} acks={acks}", lambda: produce(to, f"{name}{acks}-", PER_ROUND, compression_type=kind, acks=acks))
    await check(f"produce {name} idempotent", lambda: produce(to, f"{name}idem-", PER_ROUND, compression_type=kind, enable_idempotence=True))

    async def consume():
        assert len({r.value for r in await read(to, 4 * PER_ROUND, 2)}) == 4 * PER_ROUND
    await check(f"consume {name}", consume)


async def nulls():
    to = f"{prefix}-nulls"
    async with AIOKafkaProducer(bootstrap_servers=boot) as producer:
        for k, v in NULLS[1:]:  # it refuses null with null by itself
            await producer.send_and_wait(to, key=k, value=v, headers=HEADERS, partition=0)
    for r, (k, v) in zip(await read(to, 8), NULLS[1:]):
        assert (r.key, r.value, [tuple(h) for h in r.headers]) == (k, v, HEADERS), (r, k, v)


async def one_by_one():
    to = await topic("one")
    for i in range(3):
        assert await produce(to, str(i), 1) == [i]
    assert [(r.offset, r.value[:2]) for r in await read(to, 3)] == [(i, f"{i}0".encode()) for i in range(3)]


async def resume():
    to, group, want = await topic("resume"), f"{prefix}-resume", 0
    await produce(to, "r", 100)
    for _ in range(4):
        c = await consumer(group, to)
        got, end = [], time.time() + 30
        while len(got) < 25 and time.time() < end:
            for records in (await c.getmany(timeout_ms=300, max_records=25 - len(got))).values():
                got += records
        for r in got:
            assert r.offset == want, (r.offset, want)
            want += 1
        await c.commit()
        await c.stop()
    assert want == 100, want
    tp = TopicPartition(to, 0)
    assert (await admin.list_consumer_group_offsets(group))[tp].offset == 100


async def by_time():
    to, base = await topic("time"), int(time.time() * 1000) - 60000
    async with AIOKafkaProducer(bootstrap_servers=boot, compression_type="gzip", linger_ms=100) as producer:
        for f in [await producer.send(to, value=f"at {i}".encode(), timestamp_ms=base + i * 1000) for i in range(50)]:
            await f
    c, tp = await consumer(), TopicPartition(to, 0)
    at = (await c.offsets_for_times({tp: base + 30500}))[tp]
    assert (at.offset, at.timestamp) == (31, base + 31000), at
    assert (await c.offsets_for_times({tp: base + 999999}))[tp] is None
    assert ((await c.beginning_offsets([tp]))[tp], (await c.end_offsets([tp]))[tp]) == (0, 50)
    c.assign([tp])
    c.seek(tp, at.offset)
    assert (await c.getone()).value == b"at 31"
    await c.stop()


async def topics():
    a = await topic("admin", 2)
    assert a in await admin.list_topics()
    assert codes(await admin.create_topics([NewTopic(a, 1, 1)])) == {a: 36}
    assert codes(await admin.create_topics([NewTopic(a + "x", 1, 7)])) == {a + "x": 38}
    assert codes(await admin.create_topics([NewTopic("a b", 1, 1)])) == {"a b": 17}
    assert codes(await admin.create_topics([NewTopic(a + "dry", 1, 1)], validate_only=True)) == {a + "dry": 0}
    assert codes(await admin.create_partitions({a: NewPartitions(4)})) == {a: 0}
    try:
        await admin.create_partitions({a: NewPartitions(2)})
    except InvalidPartitionsError:
        pass
    else:
        raise AssertionError("fewer partitions accepted")
    got = await admin.describe_topics([a])
    assert len(got[0]["partitions"]) == 4, got


async def cluster():
    c = await admin.describe_cluster()
    assert len(c["brokers"]) == 1 and c["cluster_id"], c


async def configs():
    a = f"{prefix}-admin"
    await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, a, configs={"retention.ms": "777000"})])

    async def changed():
        (got,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, a)], include_synonyms=True)
        entries = {e[0]: e[1] for e in got.resources[0][4]}
        return len(entries) > 25 and entries["retention.ms"] == "777000"
    await eventually(5, changed)


async def records():
    a = f"{prefix}-admin"
    tp = TopicPartition(a, 0)
    await produce(a, "d", 400)
    assert await admin.delete_records({tp: RecordsToDelete(before_offset=7)}) == {tp: 7}
    c = await consumer()
    assert (await c.beginning_offsets([tp]))[tp] == 7
    await c.stop()


async def groups():
    a, group = f"{prefix}-admin", f"{prefix}-groups"
    c = await consumer(group, a)
    assert await c.getone()
    await c.commit()
    assert (group, "consumer") in [g[:2] for g in await admin.list_consumer_groups()]
    (d,) = await admin.describe_consumer_groups([group])
    row = d.groups[0]
    assert row[0] == 0 and row[2] == "Stable" and row[3] == "consumer" and len(row[5]) == 1 and a.encode() in row[5][0][4], row
    (none,) = await admin.describe_consumer_groups([group + "-none"])
    assert none.groups[0][2] == "Dead", none
    offsets = await admin.list_consumer_group_offsets(group)
    assert sum(o.offset for o in offsets.values()) >= 1, offsets
    await c.stop()


async def delete():
    a = f"{prefix}-admin"
    assert codes(await admin.delete_topics([a])) == {a: 0}
    assert codes(await admin.delete_topics([a])) == {a: 3}


async def main():
    global admin
    admin = AIOKafkaAdminClient(bootstrap_servers=boot)
    await admin.start()
    for name in CODECS:
        await codec(name)
    for name, f in {"B038 nulls and headers": nulls, "B011 base offset 0 in every batch": one_by_one, "commit and resume": resume, "seek by time": by_time,
                    "admin: topics": topics, "admin: cluster": cluster, "admin: configs": configs, "admin: delete records": records, "B024 admin: groups": groups,
                    "admin: delete topics": delete}.items():
        await check(name, f)
    await admin.close()
    print("done", flush=True)


asyncio.run(member(*sys.argv[3:]) if prefix == "member" else main())
