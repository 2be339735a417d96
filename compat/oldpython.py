"""kafka-python 1.4.7 (2019) as judge: oldpython.py VERSION BOOTSTRAP TOPIC WANT. VERSION, 0.8.0 to 1.0, is what it is told the
brokers are, and so which protocol it speaks. TOPIC has one partition and WANT records, whose values begin with "today-". One
line for each thing shown, "ok NAME" or "FAIL NAME | WHY"; then done."""
import sys, time, traceback
from kafka import KafkaConsumer, KafkaProducer, TopicPartition, KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

version = tuple(map(int, sys.argv[1].split(".")))
boot, topic, written = sys.argv[2], sys.argv[3], int(sys.argv[4])
end = written
tp = TopicPartition(topic, 0)


def check(name, f):
    try:
        f()
        print("ok", name, flush=True)
    except Exception as e:
        where = traceback.extract_tb(e.__traceback__)[-1]
        print("FAIL", name, "|", f"{type(e).__name__}: {e} ({where.name}:{where.lineno})".replace("\n", " "), flush=True)


def read(start, n, prefix):
    c = KafkaConsumer(bootstrap_servers=boot, api_version=version, group_id=None, enable_auto_commit=False)
    try:
        c.assign([tp])
        c.seek(tp, start)
        got, until = [], time.time() + 20
        while len(got) < n and time.time() < until:
            for records in c.poll(timeout_ms=500).values():
                got += records
        assert [r.offset for r in got[:n]] == list(range(start, start + n)), f"{len(got)} of {n} records from {start}"
        for r in got[:n]:
            assert r.value.startswith(prefix.encode()) and r.key == r.value, r
            timed = r.timestamp is not None and r.timestamp > 0
            assert timed == (version >= (0, 10)), r
    finally:
        c.close()


def write(prefix, n, codec, first):
    p = KafkaProducer(bootstrap_servers=boot, api_version=version, compression_type=codec, linger_ms=20)
    sent = [p.send(topic, key=f"{prefix}{i}".encode(), value=f"{prefix}{i}".encode()) for i in range(n)]
    p.flush(20)
    for i, f in enumerate(sent):
        m = f.get(20)
        assert m.offset == first + i, m
    p.close()


def codec(name):
    global end
    prefix = f"python-{name}-"
    write(prefix, 50, name, end)
    end += 50
    read(end - 50, 50, prefix)


def offsets():
    c = KafkaConsumer(bootstrap_servers=boot, api_version=version, group_id=None)
    c.assign([tp])
    c.seek_to_end(tp)
    assert c.position(tp) == end, c.position(tp)
    c.seek_to_beginning(tp)
    assert c.position(tp) == 0, c.position(tp)
    c.close()


def commits():
    group = f"commits-{topic}"
    for want in (None, 17):
        c = KafkaConsumer(bootstrap_servers=boot, api_version=version, group_id=group, enable_auto_commit=False)
        c.assign([tp])
        assert c.committed(tp) == want, f"{c.committed(tp)}, want {want}"
        c.seek(tp, 17)
        assert c.position(tp) == 17
        c.commit()
        assert c.committed(tp) == 17, c.committed(tp)
        c.close()


def group():
    c = KafkaConsumer(topic, bootstrap_servers=boot, api_version=version, group_id=f"group-{topic}", auto_offset_reset="earliest",
                      session_timeout_ms=6000, heartbeat_interval_ms=500, consumer_timeout_ms=15000)
    n = 0
    for m in c:
        assert m.offset == n, m
        n += 1
        if n == end:
            break
    c.close()  # commits and leaves
    assert n == end, f"{n} of {end}"
    c = KafkaConsumer(bootstrap_servers=boot, api_version=version, group_id=f"group-{topic}")
    assert c.committed(tp) == end, c.committed(tp)
    c.close()


def admin():
    a = KafkaAdminClient(bootstrap_servers=boot)  # it asks the broker; told a version it does not work
    name = f"admin-{topic}"
    a.create_topics([NewTopic(name, 2, 1, topic_configs={"retention.ms": "5000"})])
    found = a.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
    assert "5000" in str(found), found
    assert any(g.startswith("group-") for g, _ in a.list_consumer_groups())
    a.delete_topics([name])
    a.close()


check("read what today's client wrote", lambda: read(0, written, "today-"))
check("read from the middle of a batch", lambda: read(written - 7, 7, "today-"))
for name in [None, "gzip", "snappy"] + (["lz4"] if version >= (0, 8, 2) else []):
    check(f"write and read {name}", lambda: codec(name))
check("offsets", offsets)
if version >= (0, 8, 1):
    check("commit and fetch", commits)
if version >= (0, 9):
    check("group", group)
if version >= (0, 10, 2):
    check("topics and configs", admin)
print("done")
