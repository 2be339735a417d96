// What only code can ask of Kafka's Java clients: run as `Judge clients|admin BOOTSTRAP`. One line for each thing shown:
// "ok NAME", "unsupported NAME | WHY" (the broker does not advertise the API) or "FAIL NAME | WHY". java_test.go makes a test of each.

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.serialization.*;

public class Judge {
    static String boot;
    static String run = Long.toString(System.currentTimeMillis(), 36);

    interface Check { void go() throws Exception; }

    static void check(String name, Check c) {
        try {
            c.go();
            System.out.println("ok " + name);
        } catch (Throwable t) {
            Throwable root = t;
            while ((root instanceof ExecutionException || root instanceof KafkaException) && root.getCause() != null) root = root.getCause();
            for (Throwable e = t; e != null; e = e.getCause()) if (e instanceof UnsupportedVersionException) root = e;
            String why = (root.getClass().getSimpleName() + ": " + root.getMessage()).replace('\n', ' ');
            if (root instanceof UnsupportedVersionException) System.out.println("unsupported " + name + " | " + why);
            else {
                StackTraceElement at = Arrays.stream(root.getStackTrace()).filter(e -> e.getClassName().startsWith("Judge")).findFirst().orElse(null);
                System.out.println("FAIL " + name + " | " + why + (at == null ? "" : " (line " + at.getLineNumber() + ")"));
            }
        }
        System.out.flush();
    }

    static void that(boolean ok, Object what) {
        if (!ok) throw new AssertionError(String.valueOf(what));
    }

    static void same(Object got, Object want) {
        that(Objects.equals(got, want), "got " + got + ", want " + want);
    }

    // The call must fail with this exception.
    static void fails(Class<? extends Throwable> kind, Check c) throws Exception {
        try {
            c.go();
        } catch (Throwable t) {
            Throwable root = t;
            while (root instanceof ExecutionException && root.getCause() != null) root = root.getCause();
            if (root instanceof UnsupportedVersionException) throw (UnsupportedVersionException) root;
            that(kind.isInstance(root), "failed with " + root + ", want " + kind.getSimpleName());
            return;
        }
        throw new AssertionError("did not fail, want " + kind.getSimpleName());
    }

    static void eventually(String what, Callable<Boolean> c) throws Exception {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (!c.call()) {
            that(System.nanoTime() < until, what + ": not within 20 s");
            Thread.sleep(50);
        }
    }

    static Properties props(String... kv) {
        Properties p = new Properties();
        p.put("bootstrap.servers", boot);
        p.put("key.serializer", StringSerializer.class.getName());
        p.put("value.serializer", StringSerializer.class.getName());
        p.put("key.deserializer", StringDeserializer.class.getName());
        p.put("value.deserializer", StringDeserializer.class.getName());
        p.put("default.api.timeout.ms", "20000");
        p.put("request.timeout.ms", "10000");
        for (int i = 0; i < kv.length; i += 2) p.put(kv[i], kv[i + 1]);
        return p;
    }

    static <T> T get(KafkaFuture<T> f) throws Exception { return f.get(25, TimeUnit.SECONDS); }

    public static void main(String[] args) throws Exception {
        boot = args[1];
        try (Admin admin = Admin.create(props())) {
            if (args[0].equals("clients")) clients(admin);
            else admin(admin);
        }
        System.out.println("done");
        System.exit(0);
    }

    static String topic(Admin admin, String name, int partitions) throws Exception {
        name = "java-" + name + "-" + run;
        get(admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all());
        String n = name;
        Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
        for (TopicPartition tp : parts(name, partitions)) ends.put(tp, OffsetSpec.latest());
        eventually("leaders of " + n, () -> {
            try {
                return get(admin.listOffsets(ends).all()).size() == partitions;
            } catch (ExecutionException e) {
                return false;
            }
        });
        return name;
    }

    static void produce(String topic, int n, String prefix, String... kv) throws Exception {
        try (KafkaProducer<String, String> p = new KafkaProducer<>(props(kv))) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < n; i++) sent.add(p.send(new ProducerRecord<>(topic, prefix + i, prefix + i + "-" + "v".repeat(i % 200))));
            p.flush();
            for (Future<RecordMetadata> f : sent) f.get();
        }
    }

    static List<TopicPartition> parts(String topic, int n) {
        return IntStream.range(0, n).mapToObj(i -> new TopicPartition(topic, i)).collect(Collectors.toList());
    }

    // ---- producers and consumers

    static void clients(Admin admin) throws Exception {
        String matrix = topic(admin, "matrix", 3);
        AtomicInteger want = new AtomicInteger();
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd"))
            for (String acks : List.of("0", "1", "all"))
                check("produce " + codec + " acks=" + acks, () -> {
                    produce(matrix, 200, codec + acks + "-", "compression.type", codec, "acks", acks, "enable.idempotence", String.valueOf(acks.equals("all")), "linger.ms", "20");
                    want.addAndGet(200);
                });
        check("consume all codecs", () -> {
            Map<String, Integer> seen = new HashMap<>();
            try (KafkaConsumer<String, String> c = new KafkaConsumer<>(props("group.id", "java-matrix-" + run, "auto.offset.reset", "earliest", "enable.auto.commit", "false"))) {
                c.subscribe(List.of(matrix));
                long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
                while (seen.size() < want.get() && System.nanoTime() < until)
                    for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(200))) {
                        that(r.value().startsWith(r.key() + "-"), "key " + r.key() + " with value " + r.value());
                        seen.merge(r.key(), 1, Integer::sum);
                    }
                c.commitSync();
            }
            same(seen.size(), want.get());
            that(seen.values().stream().allMatch(n -> n == 1), "a record came twice");
        });
        check("commit and resume", () -> {
            String t = topic(admin, "resume", 1), g = "java-resume-" + run;
            produce(t, 100, "r");
            long next = 0;
            for (int round = 0; round < 5; round++)
                try (KafkaConsumer<String, String> c = new KafkaConsumer<>(props("group.id", g, "auto.offset.reset", "earliest", "enable.auto.commit", "false", "max.poll.records", "20"))) {
                    c.subscribe(List.of(t));
                    ConsumerRecords<String, String> got;
                    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
                    do got = c.poll(Duration.ofMillis(500)); while (got.isEmpty() && System.nanoTime() < until);
                    for (ConsumerRecord<String, String> r : got) same(r.offset(), next++);
                    if (round % 2 == 0) c.commitSync(); else c.commitSync(Map.of(new TopicPartition(t, 0), new OffsetAndMetadata(next, "note " + round)));
                }
            same(next, 100L);
            try (KafkaConsumer<String, String> c = new KafkaConsumer<>(props("group.id", g))) {
                OffsetAndMetadata o = c.committed(Set.of(new TopicPartition(t, 0))).get(new TopicPartition(t, 0));
                same(o.offset(), 100L);
            }
        });
        check("seek by time, begin and end", () -> {
            String t = topic(admin, "time", 1);
            long base = System.currentTimeMillis() - 100_000;
            try (KafkaProducer<String, String> p = new KafkaProducer<>(props("compression.type", "zstd", "linger.ms", "50"))) {
                for (int i = 0; i < 100; i++) p.send(new ProducerRecord<>(t, 0, base + i * 1000L, null, "at " + i));
            }
            TopicPartition tp = new TopicPartition(t, 0);
            try (KafkaConsumer<String, String> c = new KafkaConsumer<>(props())) {
                c.assign(List.of(tp));
                OffsetAndTimestamp at = c.offsetsForTimes(Map.of(tp, base + 41_500)).get(tp);
                same(at.offset(), 42L);
                same(at.timestamp(), base + 42_000);
                same(c.offsetsForTimes(Map.of(tp, base + 10_000_000)).get(tp), null);
                same(c.beginningOffsets(List.of(tp)).get(tp), 0L);
                same(c.endOffsets(List.of(tp)).get(tp), 100L);
                c.seek(tp, at.offset());
                ConsumerRecords<String, String> got = c.poll(Duration.ofSeconds(10));
                same(got.iterator().next().value(), "at 42");
                c.seekToEnd(List.of(tp));
                same(c.position(tp), 100L);
                c.seekToBeginning(List.of(tp));
                same(c.poll(Duration.ofSeconds(10)).iterator().next().value(), "at 0");
                same(c.partitionsFor(t).size(), 1);
                that(c.listTopics().containsKey(t), "listTopics lacks " + t);
                that(c.currentLag(tp).isPresent(), "no lag");
            }
        });
        check("null and empty keys, values and headers", () -> {
            String t = topic(admin, "nulls", 1);
            Properties pp = props("key.serializer", ByteArraySerializer.class.getName(), "value.serializer", ByteArraySerializer.class.getName());
            byte[][] kinds = {null, {}, {'x'}};
            List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
            try (KafkaProducer<byte[], byte[]> p = new KafkaProducer<>(pp)) {
                for (byte[] k : kinds) for (byte[] v : kinds) for (byte[] h : kinds) {
                    ProducerRecord<byte[], byte[]> r = new ProducerRecord<>(t, 0, k, v);
                    r.headers().add("h", h).add("h", kinds[2]).add("", kinds[1]);
                    sent.add(r);
                    p.send(r);
                }
                ProducerRecord<byte[], byte[]> many = new ProducerRecord<>(t, 0, null, null);
                for (int i = 0; i < 1000; i++) many.headers().add("n" + i % 7, Integer.toString(i).getBytes());
                sent.add(many);
                p.send(many).get();
            }
            Properties cp = props("key.deserializer", ByteArrayDeserializer.class.getName(), "value.deserializer", ByteArrayDeserializer.class.getName());
            try (KafkaConsumer<byte[], byte[]> c = new KafkaConsumer<>(cp)) {
                c.assign(parts(t, 1));
                c.seekToBeginning(parts(t, 1));
                int i = 0;
                long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
                while (i < sent.size() && System.nanoTime() < until)
                    for (ConsumerRecord<byte[], byte[]> r : c.poll(Duration.ofMillis(500))) {
                        ProducerRecord<byte[], byte[]> w = sent.get(i++);
                        that(Arrays.equals(r.key(), w.key()) && Arrays.equals(r.value(), w.value()) && r.headers().equals(w.headers()), "record " + i + " differs");
                    }
                same(i, sent.size());
            }
        });
        for (String protocol : List.of("classic", "consumer"))
            for (String assignor : protocol.equals("classic") ? List.of("org.apache.kafka.clients.consumer.RangeAssignor", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor") : List.of("-"))
                check("group of changing members, " + protocol + " " + assignor.substring(assignor.lastIndexOf('.') + 1), () -> group(admin, protocol, assignor));
        check("record too large", () -> {
            String t = topic(admin, "large", 1);
            try (KafkaProducer<String, String> p = new KafkaProducer<>(props("max.request.size", "20000000", "buffer.memory", "40000000"))) {
                fails(RecordTooLargeException.class, () -> p.send(new ProducerRecord<>(t, "x".repeat(3_000_000))).get());
                p.send(new ProducerRecord<>(t, "small")).get();
            }
        });
        check("offset out of range", () -> {
            String t = topic(admin, "range", 1);
            produce(t, 3, "x");
            try (KafkaConsumer<String, String> c = new KafkaConsumer<>(props("auto.offset.reset", "none"))) {
                c.assign(parts(t, 1));
                c.seek(parts(t, 1).get(0), 99);
                fails(org.apache.kafka.clients.consumer.OffsetOutOfRangeException.class, () -> { for (int i = 0; i < 20; i++) c.poll(Duration.ofMillis(500)); });
            }
        });
        check("auto-created topic", () -> produce("java-auto-" + run, 5, "x"));
        check("200 partitions, keyed", () -> {
            String t = topic(admin, "wide", 200);
            produce(t, 2000, "k");
            long total = 0;
            try (KafkaConsumer<String, String> c = new KafkaConsumer<>(props())) {
                for (long end : c.endOffsets(parts(t, 200)).values()) total += end;
            }
            same(total, 2000L);
            get(admin.deleteTopics(List.of(t)).all());
        });
        check("delete", () -> {
            get(admin.deleteTopics(List.of("java-auto-" + run, "java-range-" + run)).all());
            eventually("topics gone", () -> !get(admin.listTopics().names()).contains("java-range-" + run));
        });
    }

    // Members come, leave and fall silent while a producer writes; every record must be seen.
    static void group(Admin admin, String protocol, String assignor) throws Exception {
        String t = topic(admin, "group-" + protocol + assignor.hashCode(), 6), g = "java-group-" + protocol + assignor.hashCode() + run;
        Set<String> seen = ConcurrentHashMap.newKeySet();
        AtomicReference<Throwable> bad = new AtomicReference<>();
        class Member extends Thread {
            final AtomicBoolean stop = new AtomicBoolean();
            int polls;
            volatile boolean assigned;
            public void run() {
                Properties p = props("group.id", g, "auto.offset.reset", "earliest", "auto.commit.interval.ms", "200", "group.protocol", protocol);
                if (protocol.equals("classic")) {
                    p.put("partition.assignment.strategy", assignor);
                    p.put("session.timeout.ms", "6000");
                    p.put("heartbeat.interval.ms", "500");
                }
                try (KafkaConsumer<String, String> c = new KafkaConsumer<>(p)) {
                    c.subscribe(List.of(t));
                    while (!stop.get()) {
                        for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(100))) seen.add(r.value());
                        assigned = !c.assignment().isEmpty();
                    }
                } catch (Throwable e) {
                    bad.compareAndSet(null, e);
                }
            }
            Member go() { start(); return this; }
            void end() throws Exception { stop.set(true); join(20_000); that(!isAlive(), "a member does not end"); }
        }
        Member a = new Member().go(), b = new Member().go();
        try {
            produce(t, 500, "a");
            eventually("first two", () -> bad.get() != null || a.assigned && b.assigned);
            Member c = new Member().go();
            produce(t, 500, "b");
            eventually("third", () -> bad.get() != null || c.assigned);
            b.end();
            produce(t, 500, "c");
            Member d = new Member().go();
            produce(t, 500, "d");
            c.end();
            eventually("fourth", () -> bad.get() != null || d.assigned);
            eventually("every record (" + seen.size() + ")", () -> bad.get() != null || seen.size() == 2000);
            d.end();
        } finally {
            a.end();
        }
        if (bad.get() != null) throw new RuntimeException(bad.get());
        Map<TopicPartition, OffsetAndMetadata> done = get(admin.listConsumerGroupOffsets(g).partitionsToOffsetAndMetadata());
        same(done.values().stream().mapToLong(OffsetAndMetadata::offset).sum(), 2000L);
        get(admin.deleteConsumerGroups(List.of(g)).all());
        get(admin.deleteTopics(List.of(t)).all());
    }

    // ---- the AdminClient, call by call

    static void admin(Admin admin) throws Exception {
        String t = "java-admin-" + run, g = "java-admin-group-" + run;
        TopicPartition p0 = new TopicPartition(t, 0), p1 = new TopicPartition(t, 1);
        ConfigResource tr = new ConfigResource(ConfigResource.Type.TOPIC, t);
        int[] self = {1};
        check("describeCluster", () -> {
            DescribeClusterResult r = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
            same(get(r.nodes()).size(), 1);
            self[0] = get(r.controller()).id();
            that(!get(r.clusterId()).isEmpty(), "no cluster id");
            that(get(r.authorizedOperations()) != null, "no authorized operations");
        });
        check("createTopics", () -> {
            CreateTopicsResult r = admin.createTopics(List.of(new NewTopic(t, 2, (short) 1).configs(Map.of("retention.ms", "7200000"))));
            get(r.all());
            same(get(r.numPartitions(t)), 2);
            same(get(r.config(t)).get("retention.ms").value(), "7200000");
            that(!get(r.topicId(t)).equals(Uuid.ZERO_UUID), "no topic id");
        });
        check("createTopics validate only", () -> {
            get(admin.createTopics(List.of(new NewTopic(t + "-dry", 1, (short) 1)), new CreateTopicsOptions().validateOnly(true)).all());
            that(!get(admin.listTopics().names()).contains(t + "-dry"), "it was created");
        });
        check("createTopics broker defaults", () -> get(admin.createTopics(List.of(new NewTopic(t + "-default", Optional.empty(), Optional.empty()))).all()));
        check("createTopics existing", () -> fails(TopicExistsException.class, () -> get(admin.createTopics(List.of(new NewTopic(t, 1, (short) 1))).all())));
        check("createTopics bad name", () -> fails(InvalidTopicException.class, () -> get(admin.createTopics(List.of(new NewTopic("a b", 1, (short) 1))).all())));
        check("createTopics replication", () -> fails(InvalidReplicationFactorException.class, () -> get(admin.createTopics(List.of(new NewTopic(t + "-rf", 1, (short) 5))).all())));
        check("createTopics bad config", () -> fails(InvalidConfigurationException.class, () -> get(admin.createTopics(List.of(new NewTopic(t + "-cfg", 1, (short) 1).configs(Map.of("nonsense", "1")))).all())));
        check("listTopics", () -> that(get(admin.listTopics(new ListTopicsOptions().listInternal(true)).listings()).stream().anyMatch(l -> l.name().equals(t) && !l.topicId().equals(Uuid.ZERO_UUID)), "not listed"));
        Uuid[] id = {Uuid.ZERO_UUID};
        check("describeTopics by name and id", () -> {
            TopicDescription d = get(admin.describeTopics(List.of(t), new DescribeTopicsOptions().includeAuthorizedOperations(true)).allTopicNames()).get(t);
            same(d.partitions().size(), 2);
            same(d.partitions().get(0).leader().id(), self[0]);
            id[0] = d.topicId();
            same(get(admin.describeTopics(TopicCollection.ofTopicIds(List.of(id[0]))).allTopicIds()).get(id[0]).name(), t);
        });
        check("describeTopics unknown", () -> {
            fails(UnknownTopicOrPartitionException.class, () -> get(admin.describeTopics(List.of("nowhere")).allTopicNames()));
            fails(UnknownTopicIdException.class, () -> get(admin.describeTopics(TopicCollection.ofTopicIds(List.of(Uuid.randomUuid()))).allTopicIds()));
        });
        check("createPartitions", () -> {
            get(admin.createPartitions(Map.of(t, NewPartitions.increaseTo(4))).all());
            eventually("four partitions", () -> get(admin.describeTopics(List.of(t)).allTopicNames()).get(t).partitions().size() == 4);
            fails(InvalidPartitionsException.class, () -> get(admin.createPartitions(Map.of(t, NewPartitions.increaseTo(3))).all()));
        });
        check("produce for the rest", () -> {
            long base = System.currentTimeMillis() - 3_000_000;
            try (KafkaProducer<String, String> p = new KafkaProducer<>(props())) {
                for (int i = 0; i < 40; i++) p.send(new ProducerRecord<>(t, i % 4, base + 1000L * (40 - i), "k" + i, "v" + i)).get();
            }
        });
        check("listOffsets every spec", () -> {
            long base = get(admin.listOffsets(Map.of(p0, OffsetSpec.maxTimestamp())).partitionResult(p0)).timestamp();
            same(get(admin.listOffsets(Map.of(p0, OffsetSpec.maxTimestamp())).partitionResult(p0)).offset(), 0L);
            same(get(admin.listOffsets(Map.of(p0, OffsetSpec.earliest())).partitionResult(p0)).offset(), 0L);
            same(get(admin.listOffsets(Map.of(p0, OffsetSpec.latest())).partitionResult(p0)).offset(), 10L);
            same(get(admin.listOffsets(Map.of(p0, OffsetSpec.forTimestamp(base))).partitionResult(p0)).offset(), 0L);
            same(get(admin.listOffsets(Map.of(p0, OffsetSpec.forTimestamp(base + 1))).partitionResult(p0)).offset(), -1L);
            same(get(admin.listOffsets(Map.of(p0, OffsetSpec.latest()), new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).partitionResult(p0)).offset(), 10L);
        });
        check("listOffsets local and tiered", () -> {
            same(get(admin.listOffsets(Map.of(p0, OffsetSpec.earliestLocal())).partitionResult(p0)).offset(), 0L);
            same(get(admin.listOffsets(Map.of(p0, OffsetSpec.latestTiered())).partitionResult(p0)).offset(), -1L);
        });
        check("deleteRecords", () -> {
            same(get(admin.deleteRecords(Map.of(p1, RecordsToDelete.beforeOffset(4))).lowWatermarks().get(p1)).lowWatermark(), 4L);
            same(get(admin.listOffsets(Map.of(p1, OffsetSpec.earliest())).partitionResult(p1)).offset(), 4L);
            fails(org.apache.kafka.common.errors.OffsetOutOfRangeException.class, () -> get(admin.deleteRecords(Map.of(p1, RecordsToDelete.beforeOffset(400))).all()));
        });
        check("describeConfigs of everything", () -> {
            ConfigResource br = new ConfigResource(ConfigResource.Type.BROKER, "" + self[0]);
            Map<ConfigResource, Config> all = get(admin.describeConfigs(List.of(tr, br), new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true)).all());
            ConfigEntry e = all.get(tr).get("retention.ms");
            same(e.value(), "7200000");
            same(e.source(), ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG);
            same(e.type(), ConfigEntry.ConfigType.LONG);
            that(e.documentation() != null && !e.documentation().isEmpty() && !e.synonyms().isEmpty(), "no documentation or synonyms");
            that(all.get(br).entries().size() > 150, all.get(br).entries().size() + " broker keys");
            for (ConfigEntry b : all.get(br).entries()) that(b.type() != ConfigEntry.ConfigType.UNKNOWN, b.name() + " has no type");
        });
        check("describeConfigs of loggers", () -> {
            ConfigResource lr = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, "" + self[0]);
            that(!get(admin.describeConfigs(List.of(lr)).all()).get(lr).entries().isEmpty(), "no logger");
        });
        check("incrementalAlterConfigs", () -> {
            get(admin.incrementalAlterConfigs(Map.of(tr, List.of(
                new AlterConfigOp(new ConfigEntry("retention.ms", "86400000"), AlterConfigOp.OpType.SET),
                new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND)))).all());
            eventually("the new value", () -> "86400000".equals(get(admin.describeConfigs(List.of(tr)).all()).get(tr).get("retention.ms").value()));
            get(admin.incrementalAlterConfigs(Map.of(tr, List.of(
                new AlterConfigOp(new ConfigEntry("retention.ms", ""), AlterConfigOp.OpType.DELETE),
                new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.SUBTRACT)))).all());
            eventually("the default again", () -> get(admin.describeConfigs(List.of(tr)).all()).get(tr).get("retention.ms").isDefault());
        });
        check("incrementalAlterConfigs of the broker", () -> {
            ConfigResource def = new ConfigResource(ConfigResource.Type.BROKER, "");
            get(admin.incrementalAlterConfigs(Map.of(def, List.of(new AlterConfigOp(new ConfigEntry("log.cleaner.threads", "2"), AlterConfigOp.OpType.SET)))).all());
            eventually("read back", () -> { ConfigEntry e = get(admin.describeConfigs(List.of(def)).all()).get(def).get("log.cleaner.threads"); return e != null && "2".equals(e.value()); });
            get(admin.incrementalAlterConfigs(Map.of(def, List.of(new AlterConfigOp(new ConfigEntry("log.cleaner.threads", ""), AlterConfigOp.OpType.DELETE)))).all());
        });
        check("describeLogDirs", () -> {
            Map<String, LogDirDescription> d = get(admin.describeLogDirs(List.of(self[0])).allDescriptions()).get(self[0]);
            that(!d.isEmpty(), "no directory");
            LogDirDescription one = d.values().iterator().next();
            same(one.error(), null);
            that(one.replicaInfos().get(p0).size() > 0, "no size");
            that(one.totalBytes().orElse(0) > 0 && one.usableBytes().orElse(0) > 0, "no volume size");
        });
        check("describeReplicaLogDirs", () -> {
            TopicPartitionReplica r = new TopicPartitionReplica(t, 0, self[0]);
            that(get(admin.describeReplicaLogDirs(List.of(r)).all()).get(r).getCurrentReplicaLogDir() != null, "no directory");
        });
        check("electLeaders preferred", () -> fails(ElectionNotNeededException.class, () -> {
            Optional<Throwable> e = get(admin.electLeaders(ElectionType.PREFERRED, Set.of(p0)).partitions()).get(p0);
            if (e.isPresent()) throw new ExecutionException(e.get());
        }));
        check("electLeaders unclean, all", () -> get(admin.electLeaders(ElectionType.UNCLEAN, null).partitions()));
        check("reassignments", () -> {
            get(admin.alterPartitionReassignments(Map.of(p0, Optional.of(new NewPartitionReassignment(List.of(self[0]))))).all());
            fails(NoReassignmentInProgressException.class, () -> get(admin.alterPartitionReassignments(Map.of(p0, Optional.empty())).all()));
            fails(InvalidReplicaAssignmentException.class, () -> get(admin.alterPartitionReassignments(Map.of(p0, Optional.of(new NewPartitionReassignment(List.of(self[0] + 77))))).all()));
            same(get(admin.listPartitionReassignments().reassignments()).size(), 0);
        });
        check("describeProducers", () -> {
            List<ProducerState> s = get(admin.describeProducers(List.of(p0)).partitionResult(p0)).activeProducers();
            that(!s.isEmpty() && s.get(0).lastSequence() >= 0, "no active producer after an idempotent one: " + s);
        });
        check("describeMetadataQuorum", () -> {
            QuorumInfo q = get(admin.describeMetadataQuorum().quorumInfo());
            same(q.leaderId(), self[0]);
            same(q.voters().size(), 1);
            that(q.highWatermark() > 0 && q.leaderEpoch() >= 0, q);
        });
        check("describeFeatures", () -> {
            FeatureMetadata f = get(admin.describeFeatures().featureMetadata());
            that(f.supportedFeatures() != null && f.finalizedFeatures() != null, "none");
        });
        check("groups: a member for the rest", () -> {
            try (KafkaConsumer<String, String> c = new KafkaConsumer<>(props("group.id", g, "auto.offset.reset", "earliest", "group.instance.id", "java-static", "group.protocol", "classic", "enable.auto.commit", "false"))) {
                c.subscribe(List.of(t));
                int n = 0;
                long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
                while (n < 36 && System.nanoTime() < until) n += c.poll(Duration.ofMillis(300)).count();
                same(n, 36);
                c.commitSync();
            } // a static member stays in the group
        });
        check("listGroups", () -> {
            that(get(admin.listGroups().all()).stream().anyMatch(l -> l.groupId().equals(g) && l.protocol().equals("consumer")), "not listed");
            that(get(admin.listGroups(new ListGroupsOptions().withTypes(Set.of(GroupType.CLASSIC))).all()).stream().anyMatch(l -> l.groupId().equals(g)), "not listed as classic");
        });
        check("listConsumerGroups", () -> that(get(admin.listConsumerGroups(new ListConsumerGroupsOptions().inGroupStates(Set.of(GroupState.STABLE))).all()).stream().anyMatch(l -> l.groupId().equals(g)), "not listed as stable"));
        check("describeConsumerGroups", () -> {
            ConsumerGroupDescription d = get(admin.describeConsumerGroups(List.of(g), new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)).all()).get(g);
            same(d.groupState(), GroupState.STABLE);
            same(d.members().size(), 1);
            MemberDescription m = d.members().iterator().next();
            same(m.groupInstanceId().orElse(""), "java-static");
            same(m.assignment().topicPartitions().size(), 4);
            same(d.coordinator().id(), self[0]);
        });
        check("describeConsumerGroups unknown", () -> fails(GroupIdNotFoundException.class, () -> get(admin.describeConsumerGroups(List.of("java-nobody")).all())));
        check("describeClassicGroups", () -> same(get(admin.describeClassicGroups(List.of(g)).all()).get(g).state(), ClassicGroupState.STABLE));
        check("listConsumerGroupOffsets", () -> {
            same(get(admin.listConsumerGroupOffsets(g).partitionsToOffsetAndMetadata()).get(p0).offset(), 10L);
            Map<String, Map<TopicPartition, OffsetAndMetadata>> two = get(admin.listConsumerGroupOffsets(Map.of(g, new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(p0)), "java-nobody", new ListConsumerGroupOffsetsSpec())).all());
            same(two.get(g).get(p0).offset(), 10L);
            same(two.get("java-nobody").size(), 0);
        });
        check("alterConsumerGroupOffsets of a live group", () -> fails(UnknownMemberIdException.class, () -> get(admin.alterConsumerGroupOffsets(g, Map.of(p0, new OffsetAndMetadata(3))).all())));
        check("deleteConsumerGroups, not empty", () -> fails(GroupNotEmptyException.class, () -> get(admin.deleteConsumerGroups(List.of(g)).all())));
        check("deleteConsumerGroupOffsets of a subscribed topic", () -> fails(GroupSubscribedToTopicException.class, () -> get(admin.deleteConsumerGroupOffsets(g, Set.of(p0)).all())));
        check("removeMembersFromConsumerGroup", () -> {
            get(admin.removeMembersFromConsumerGroup(g, new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("java-static")))).all());
            eventually("empty", () -> get(admin.describeConsumerGroups(List.of(g)).all()).get(g).groupState() == GroupState.EMPTY);
        });
        check("alterConsumerGroupOffsets", () -> {
            get(admin.alterConsumerGroupOffsets(g, Map.of(p0, new OffsetAndMetadata(3, Optional.of(0), "set by hand"))).all());
            OffsetAndMetadata o = get(admin.listConsumerGroupOffsets(g).partitionsToOffsetAndMetadata()).get(p0);
            same(o.offset(), 3L);
            same(o.metadata(), "set by hand");
        });
        check("deleteConsumerGroupOffsets", () -> {
            get(admin.deleteConsumerGroupOffsets(g, Set.of(p0)).all());
            that(!get(admin.listConsumerGroupOffsets(g).partitionsToOffsetAndMetadata()).containsKey(p0), "still there");
        });
        check("deleteConsumerGroups", () -> {
            get(admin.deleteConsumerGroups(List.of(g)).all());
            fails(GroupIdNotFoundException.class, () -> get(admin.deleteConsumerGroups(List.of(g)).all()));
        });
        check("describeClientQuotas", () -> get(admin.describeClientQuotas(ClientQuotaFilter.all()).entities()));
        check("alterClientQuotas", () -> {
            ClientQuotaEntity e = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, "java-judge-quota"));
            get(admin.alterClientQuotas(List.of(new ClientQuotaAlteration(e, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 5e8))))).all());
            eventually("read back", () -> get(admin.describeClientQuotas(ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.CLIENT_ID, "java-judge-quota")))).entities()).containsKey(e));
            get(admin.alterClientQuotas(List.of(new ClientQuotaAlteration(e, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", null))))).all());
        });
        check("listConfigResources", () -> that(get(admin.listConfigResources(Set.of(ConfigResource.Type.TOPIC), new ListConfigResourcesOptions()).all()).contains(tr), "topic not listed"));
        check("listClientMetricsResources", () -> get(admin.listConfigResources(Set.of(ConfigResource.Type.CLIENT_METRICS), new ListConfigResourcesOptions()).all()));
        check("listTransactions", () -> get(admin.listTransactions().all()));
        check("describeTransactions unknown", () -> {
            get(admin.listTransactions().all()); // a broker without transactions does not get further: decision 0007
            fails(TransactionalIdNotFoundException.class, () -> get(admin.describeTransactions(List.of("java-nobody")).all()));
        });
        check("describeAcls without an authorizer", () -> fails(SecurityDisabledException.class, () -> get(admin.describeAcls(org.apache.kafka.common.acl.AclBindingFilter.ANY).values())));
        check("describeUserScramCredentials", () -> get(admin.describeUserScramCredentials().all()));
        check("describeDelegationToken", () -> fails(UnsupportedByAuthenticationException.class, () -> get(admin.describeDelegationToken().delegationTokens())));
        check("deleteTopics by name and id", () -> {
            get(admin.deleteTopics(List.of(t + "-default")).all());
            get(admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id[0]))).all());
            eventually("gone", () -> !get(admin.listTopics().names()).contains(t));
            fails(UnknownTopicOrPartitionException.class, () -> get(admin.deleteTopics(List.of(t)).all()));
            fails(UnknownTopicIdException.class, () -> get(admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id[0]))).all()));
        });
    }
}
