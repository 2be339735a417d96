"""confluent-kafka (the newest librdkafka) as judge: librdkafka.py BOOTSTRAP. One line for each thing shown, "ok NAME" or
"FAIL NAME | WHY"; librdkafka_test.go makes a test of each. With a second argument it is one group member: librdkafka.py
BOOTSTRAP member GROUP TOPIC prints each value it sees and ends on SIGTERM."""
import signal, subprocess, sys, threading, time, traceback
from confluent_kafka import (Consumer, KafkaError, KafkaException, Producer, TopicPartition, ConsumerGroupTopicPartitions, IsolationLevel,
                             ElectionType, TopicCollection, OFFSET_BEGINNING, OFFSET_END)
from confluent_kafka.admin import (AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, OffsetSpec,
                                   ResourceType)

boot = sys.argv[1]
run = str(time.time_ns())


def member(group, topic):
    stop = []
    signal.signal(signal.SIGTERM, lambda *a: stop.append(1))
    c = Consumer({"bootstrap.servers": boot, "group.id": group, "auto.offset.reset": "earliest", "session.timeout.ms": 6000,
                  "heartbeat.interval.ms": 500, "auto.commit.interval.ms": 200, "partition.assignment.strategy": "cooperative-sticky"})
    c.subscribe([topic])
    while not stop:
        m = c.poll(0.1)
        if m is not None and not m.error():
            print(m.value().decode(), flush=True)
    c.close()


def check(name):
    def go(f):
        try:
            f()
            print("ok", name, flush=True)
        except Exception as e:
            where = traceback.extract_tb(e.__traceback__)[-1]
            print("FAIL", name, "|", f"{type(e).__name__}: {e} ({where.name}:{where.lineno})".replace("\n", " "), flush=True)
    return go


def done(futures):
    return {k: f.result(20) for k, f in futures.items()}


def refused(code, futures):
    for f in futures.values():
        try:
            f.result(20)
        except KafkaException as e:
            assert e.args[0].code() == code, e
        else:
            raise AssertionError("was accepted")


admin = None


def topic(name, partitions=1, **config):
    name = f"rd-{name}-{run}"
    done(admin.create_topics([NewTopic(name, partitions, 1, config=config)]))
    until = time.time() + 10
    while True:
        try:  # a client of its own: librdkafka remembers for long that a topic had no leader
            fresh = AdminClient({"bootstrap.servers": boot})
            done(fresh.list_offsets({TopicPartition(name, p): OffsetSpec.latest() for p in range(partitions)}))
            return name
        except KafkaException:
            assert time.time() < until
            time.sleep(0.05)


def produce(name, n, prefix, **conf):
    bad = []
    p = Producer({"bootstrap.servers": boot, "linger.ms": 20, **{k.replace("_", "."): v for k, v in conf.items()}})
    for i in range(n):
        p.produce(name, key=f"k{i}", value=f"{prefix}{i}-" + "text " * 20, on_delivery=lambda e, m: e and bad.append(e))
        p.poll(0)
    assert p.flush(30) == 0, "not flushed"
    assert not bad, bad


def read(name, n, partitions=1, **conf):
    c = Consumer({"bootstrap.servers": boot, "group.id": f"rd-{run}", "auto.offset.reset": "earliest", "enable.auto.commit": False, "check.crcs": True, **conf})
    c.assign([TopicPartition(name, p, OFFSET_BEGINNING) for p in range(partitions)])
    out, until = [], time.time() + 30
    while len(out) < n and time.time() < until:
        for m in c.consume(500, 0.5):
            assert not m.error(), m.error()
            out.append(m)
    c.close()
    assert len(out) == n, f"read {len(out)} of {n}"
    return out


def main():
    global admin
    admin = AdminClient({"bootstrap.servers": boot})

    t = topic("matrix", 3)
    total = [0]
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        for acks in (0, 1, "all"):
            @check(f"produce {codec} acks={acks}")
            def _():
                produce(t, 200, f"{codec}{acks}-", compression_type=codec, acks=acks, enable_idempotence=acks == "all")
                total[0] += 200

    @check("consume all codecs")
    def _():
        got = {m.value() for m in read(t, total[0], 3)}
        assert len(got) == total[0]

    @check("headers, nulls, timestamps")
    def _():
        t = topic("nulls")
        p = Producer({"bootstrap.servers": boot})
        sent = [(k, v) for k in (None, b"", b"x") for v in (None, b"", b"x")]
        now = int(time.time() * 1000) - 5000
        for k, v in sent:
            p.produce(t, key=k, value=v, headers=[("h", None), ("h", b""), ("h", b"x")], timestamp=now)
        p.flush(20)
        for m, (k, v) in zip(read(t, 9), sent):
            assert (m.key(), m.value(), m.timestamp()[1]) == (k, v, now), (m.key(), m.value(), m.timestamp())
            assert m.headers() == [("h", None), ("h", b""), ("h", b"x")], m.headers()

    @check("commit and resume")
    def _():
        t, g = topic("resume"), f"rd-resume-{run}"
        produce(t, 100, "r")
        want = 0
        for _ in range(5):
            c = Consumer({"bootstrap.servers": boot, "group.id": g, "auto.offset.reset": "earliest", "enable.auto.commit": False})
            c.subscribe([t])
            got = c.consume(20, 20)
            for m in got:
                assert m.offset() == want, (m.offset(), want)
                want += 1
            c.commit(asynchronous=False)
            c.close()
        assert want == 100, want
        c = Consumer({"bootstrap.servers": boot, "group.id": g})
        assert c.committed([TopicPartition(t, 0)], 10)[0].offset == 100
        assert c.get_watermark_offsets(TopicPartition(t, 0), 10) == (0, 100)
        c.close()

    @check("seek by time")
    def _():
        t = topic("time")
        base = int(time.time() * 1000) - 60000
        p = Producer({"bootstrap.servers": boot, "compression.type": "lz4", "linger.ms": 100})
        for i in range(50):
            p.produce(t, value=f"at {i}", timestamp=base + i * 1000)
        p.flush(20)
        c = Consumer({"bootstrap.servers": boot, "group.id": f"rd-time-{run}"})
        at = c.offsets_for_times([TopicPartition(t, 0, base + 30500)], 10)[0]
        assert at.offset == 31, at
        assert c.offsets_for_times([TopicPartition(t, 0, base + 999999)], 10)[0].offset in (OFFSET_END, -1, 50)
        c.assign([TopicPartition(t, 0, at.offset)])
        assert c.consume(1, 10)[0].value() == b"at 31"
        c.close()

    @check("group of changing members")
    def _():
        t, g = topic("group", 6), f"rd-group-{run}"
        seen, lock, procs = set(), threading.Lock(), []

        def start():
            p = subprocess.Popen([sys.executable, __file__, boot, "member", g, t], stdout=subprocess.PIPE, text=True)
            def pump():
                for line in p.stdout:
                    with lock:
                        seen.add(line)
            threading.Thread(target=pump, daemon=True).start()
            procs.append(p)
            return p

        def members(n):
            until = time.time() + 40
            while time.time() < until:
                d = done(admin.describe_consumer_groups([g]))[g]
                if d.state.name == "STABLE" and len(d.members) == n:
                    return
                time.sleep(0.1)
            raise AssertionError(f"{d.state}, {len(d.members)} members, want {n}")

        try:
            a = start()
            produce(t, 300, "one")
            members(1)
            b, c = start(), start()
            produce(t, 300, "two")
            members(3)
            b.terminate()
            produce(t, 300, "three")
            members(2)
            d = start()
            members(3)
            c.kill()
            produce(t, 300, "four")
            members(2)
            until = time.time() + 30
            while len(seen) < 1200 and time.time() < until:
                time.sleep(0.1)
            assert len(seen) == 1200, f"{len(seen)} of 1200"
            a.terminate(), d.terminate()
            a.wait(20), d.wait(20)
        finally:
            for p in procs:
                p.kill()
        offsets = done(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(g)]))[g].topic_partitions
        assert sum(o.offset for o in offsets) == 1200, offsets
        done(admin.delete_consumer_groups([g]))

    a = topic("admin", 2, **{"retention.ms": "777000"})

    @check("admin: topics")
    def _():
        assert a in admin.list_topics(timeout=10).topics
        d = done(admin.describe_topics(TopicCollection([a]), include_authorized_operations=True))[a]
        assert len(d.partitions) == 2 and d.partitions[0].leader is not None, d
        refused(KafkaError.TOPIC_ALREADY_EXISTS, admin.create_topics([NewTopic(a, 1, 1)]))
        refused(KafkaError.INVALID_REPLICATION_FACTOR, admin.create_topics([NewTopic(a + "x", 1, 7)]))
        refused(KafkaError.TOPIC_EXCEPTION, admin.create_topics([NewTopic("a b", 1, 1)]))
        done(admin.create_topics([NewTopic(a + "dry", 1, 1)], validate_only=True))
        done(admin.create_partitions([NewPartitions(a, 4)]))
        refused(KafkaError.INVALID_PARTITIONS, admin.create_partitions([NewPartitions(a, 2)]))

    @check("admin: cluster")
    def _():
        c = admin.describe_cluster(include_authorized_operations=True).result(20)
        assert c.cluster_id and c.controller and len(c.nodes) == 1, c

    @check("admin: configs")
    def _():
        r = ConfigResource(ResourceType.TOPIC, a)
        got = done(admin.describe_configs([r]))[r]
        assert got["retention.ms"].value == "777000" and len(got) > 25
        r2 = ConfigResource(ResourceType.TOPIC, a, incremental_configs=[ConfigEntry("retention.ms", "888000", incremental_operation=AlterConfigOpType.SET)])
        done(admin.incremental_alter_configs([r2]))
        until = time.time() + 5
        while done(admin.describe_configs([r]))[r]["retention.ms"].value != "888000":
            assert time.time() < until
        b = ConfigResource(ResourceType.BROKER, str(admin.describe_cluster().result(20).controller.id))
        assert len(done(admin.describe_configs([b]))[b]) > 100

    @check("admin: list offsets, delete records")
    def _():
        produce(a, 400, "d")
        tp = TopicPartition(a, 0)
        end = done(admin.list_offsets({tp: OffsetSpec.latest()}, isolation_level=IsolationLevel.READ_COMMITTED))[tp].offset
        assert end > 10, end
        assert done(admin.list_offsets({tp: OffsetSpec.max_timestamp()}))[tp].timestamp > 0
        assert done(admin.delete_records([TopicPartition(a, 0, 7)]))[TopicPartition(a, 0, 7)].low_watermark == 7
        assert done(admin.list_offsets({tp: OffsetSpec.earliest()}))[tp].offset == 7
        refused(KafkaError.OFFSET_OUT_OF_RANGE, admin.delete_records([TopicPartition(a, 0, 10**9)]))

    @check("admin: groups")
    def _():
        g = f"rd-admin-{run}"
        c = Consumer({"bootstrap.servers": boot, "group.id": g, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
        c.subscribe([a])
        assert c.consume(10, 20)
        c.commit(asynchronous=False)
        assert any(x.group_id == g for x in admin.list_consumer_groups().result(20).valid)
        d = done(admin.describe_consumer_groups([g], include_authorized_operations=True))[g]
        assert d.state.name == "STABLE" and len(d.members) == 1 and len(d.members[0].assignment.topic_partitions) > 0, d
        refused(KafkaError.NON_EMPTY_GROUP, admin.delete_consumer_groups([g]))
        c.close()
        done(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(g, [TopicPartition(a, 0, 9)])]))
        got = done(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(g, [TopicPartition(a, 0)])]))[g]
        assert got.topic_partitions[0].offset == 9, got.topic_partitions
        done(admin.delete_consumer_groups([g]))
        refused(KafkaError.GROUP_ID_NOT_FOUND, admin.delete_consumer_groups([g]))

    @check("admin: elect leaders")
    def _():
        got = admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(a, 0)]).result(20)
        assert next(iter(got.values())).code() == KafkaError.ELECTION_NOT_NEEDED, got

    @check("admin: no authorizer, scram")
    def _():
        from confluent_kafka.admin import AclBindingFilter, AclOperation, AclPermissionType, ResourcePatternType
        try:
            admin.describe_acls(AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)).result(20)
        except KafkaException as e:
            assert e.args[0].code() in (KafkaError.SECURITY_DISABLED, KafkaError._UNSUPPORTED_FEATURE), e
        try:
            assert admin.describe_user_scram_credentials().result(20) == {}
        except KafkaException as e:  # not advertised: nothing to show
            assert e.args[0].code() == KafkaError._UNSUPPORTED_FEATURE, e

    @check("admin: delete topics")
    def _():
        done(admin.delete_topics([a]))
        refused(KafkaError.UNKNOWN_TOPIC_OR_PART, admin.delete_topics([a]))

    print("done", flush=True)


if len(sys.argv) > 2:
    member(*sys.argv[3:])
else:
    main()
