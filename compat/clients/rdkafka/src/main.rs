//! rdkafka as judge: judge BOOTSTRAP PREFIX, or, as a member of a group, judge BOOTSTRAP member GROUP TOPIC. One line for each
//! thing shown; ../../clients_test.go makes a test of each and says what the topics are.
use futures_executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PER_ROUND: usize = 60;
const PATIENCE: Duration = Duration::from_secs(30);
const THREE: [Option<&[u8]>; 3] = [None, Some(b""), Some(b"x")];
static STOP: AtomicBool = AtomicBool::new(false);

type Shown = Result<(), Box<dyn std::error::Error>>;

macro_rules! want {
    ($good:expr, $($why:tt)+) => { if !$good { return Err(format!($($why)+).into()) } };
}

fn check(name: &str, f: impl FnOnce() -> Shown) {
    match f() {
        Ok(()) => println!("ok {name}"),
        Err(e) => println!("FAIL {name} | {}", e.to_string().replace('\n', " ")),
    }
}

struct Judge {
    boot: String,
    prefix: String,
    admin: AdminClient<DefaultClientContext>,
}

/// The error codes of an admin answer, one per item.
fn codes<T>(rows: Vec<Result<T, (String, RDKafkaErrorCode)>>) -> Vec<Option<RDKafkaErrorCode>> {
    rows.into_iter().map(|r| r.err().map(|e| e.1)).collect()
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

fn value(prefix: &str, i: usize) -> String {
    format!("{prefix}{i}-{}", "text ".repeat(20))
}

fn consumer(boot: &str, group: &str, conf: &[(&str, &str)]) -> Result<BaseConsumer, KafkaError> {
    let mut c = ClientConfig::new();
    c.set("bootstrap.servers", boot).set("group.id", group).set("auto.offset.reset", "earliest").set("enable.auto.commit", "false");
    c.set("session.timeout.ms", "6000").set("heartbeat.interval.ms", "500").set("check.crcs", "true");
    for (k, v) in conf {
        c.set(*k, *v);
    }
    c.create()
}

impl Judge {
    fn topic(&self, name: &str, partitions: i32) -> Result<String, Box<dyn std::error::Error>> {
        let name = format!("{}-{name}", self.prefix);
        let made = block_on(self.admin.create_topics(&[NewTopic::new(&name, partitions, TopicReplication::Fixed(1))], &AdminOptions::new()))?;
        want!(made == vec![Ok(name.clone())], "create {name}: {made:?}");
        Ok(name)
    }

    fn producer(&self, conf: &[(&str, &str)]) -> Result<ThreadedProducer<DefaultProducerContext>, KafkaError> {
        let mut c = ClientConfig::new();
        c.set("bootstrap.servers", &self.boot).set("linger.ms", "20").set("message.timeout.ms", "30000");
        for (k, v) in conf {
            c.set(*k, *v);
        }
        c.create()
    }

    fn produce(&self, to: &str, prefix: &str, n: usize, conf: &[(&str, &str)]) -> Shown {
        let p = self.producer(conf)?;
        for i in 0..n {
            p.send(BaseRecord::to(to).key(&format!("k{i}")).payload(&value(prefix, i))).map_err(|e| e.0)?;
        }
        p.flush(PATIENCE)?;
        Ok(())
    }

    /// read hands n records from the start of every partition to each.
    fn read(&self, to: &str, partitions: i32, n: usize, mut each: impl FnMut(usize, &BorrowedMessage) -> Shown) -> Shown {
        let c = consumer(&self.boot, &format!("{}-read", self.prefix), &[])?;
        let mut at = TopicPartitionList::new();
        for p in 0..partitions {
            at.add_partition_offset(to, p, Offset::Beginning)?;
        }
        c.assign(&at)?;
        let begun = Instant::now();
        let mut got = 0;
        while got < n {
            want!(begun.elapsed() < PATIENCE, "read {got} of {n}");
            if let Some(m) = c.poll(Duration::from_millis(200)) {
                each(got, &m?)?;
                got += 1;
            }
        }
        Ok(())
    }

    fn codecs(&self) {
        for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
            let to = format!("{}-{codec}", self.prefix);
            for acks in ["0", "1", "all"] {
                check(&format!("produce {codec} acks={acks}"), || {
                    self.produce(&to, &format!("{codec}{acks}-"), PER_ROUND, &[("compression.type", codec), ("acks", acks)])
                });
            }
            check(&format!("produce {codec} idempotent"), || {
                self.produce(&to, &format!("{codec}idem-"), PER_ROUND, &[("compression.type", codec), ("enable.idempotence", "true")])
            });
            check(&format!("consume {codec}"), || {
                let mut seen = HashSet::new();
                self.read(&to, 2, 4 * PER_ROUND, |_, m| {
                    seen.insert(m.payload().unwrap_or_default().to_vec());
                    Ok(())
                })?;
                want!(seen.len() == 4 * PER_ROUND, "{} different values", seen.len());
                Ok(())
            });
        }
    }

    fn nulls(&self) -> Shown {
        let to = format!("{}-nulls", self.prefix);
        let p = self.producer(&[])?;
        for k in THREE {
            for v in THREE {
                let mut headers = OwnedHeaders::new();
                for h in THREE {
                    headers = headers.insert(Header { key: "h", value: h });
                }
                let mut r: BaseRecord<[u8], [u8]> = BaseRecord::to(&to).headers(headers).partition(0);
                r.key = k;
                r.payload = v;
                p.send(r).map_err(|e| e.0)?;
            }
        }
        p.flush(PATIENCE)?;
        self.read(&to, 1, 9, |i, m| {
            want!(m.key() == THREE[i / 3] && m.payload() == THREE[i % 3], "record {i}: {:?} {:?}", m.key(), m.payload());
            let h = m.headers().ok_or("no headers")?;
            want!(h.count() == 3, "record {i}: {} headers", h.count());
            for (j, three) in THREE.iter().enumerate() {
                want!(h.get(j).key == "h" && h.get(j).value == *three, "record {i} header {j}: {:?}", h.get(j).value);
            }
            Ok(())
        })
    }

    fn one_by_one(&self) -> Shown {
        let to = self.topic("one", 1)?;
        for i in 0..3 {
            self.produce(&to, &i.to_string(), 1, &[])?;
        }
        self.read(&to, 1, 3, |i, m| {
            want!(m.offset() == i as i64 && m.payload() == Some(value(&i.to_string(), 0).as_bytes()), "record {i}: offset {}", m.offset());
            Ok(())
        })
    }

    fn resume(&self) -> Shown {
        let to = self.topic("resume", 1)?;
        let group = format!("{}-resume", self.prefix);
        self.produce(&to, "r", 100, &[])?;
        let mut next = 0;
        for round in 1..=4 {
            let c = consumer(&self.boot, &group, &[])?;
            c.subscribe(&[&to])?;
            let begun = Instant::now();
            while next < round * 25 {
                want!(begun.elapsed() < PATIENCE, "stopped at {next}");
                let Some(m) = c.poll(Duration::from_millis(200)) else { continue };
                let m = m?;
                want!(m.offset() == next, "offset {}, want {next}", m.offset());
                next += 1;
                if next == round * 25 {
                    c.commit_message(&m, CommitMode::Sync)?;
                }
            }
        }
        let c = consumer(&self.boot, &group, &[])?;
        let mut ask = TopicPartitionList::new();
        ask.add_partition(&to, 0);
        let got = c.committed_offsets(ask, PATIENCE)?;
        want!(got.elements()[0].offset() == Offset::Offset(100), "committed {got:?}");
        want!(c.fetch_watermarks(&to, 0, PATIENCE)? == (0, 100), "watermarks");
        Ok(())
    }

    fn by_time(&self) -> Shown {
        let to = self.topic("time", 1)?;
        let base = now_ms() - 60_000;
        let p = self.producer(&[("compression.type", "lz4"), ("linger.ms", "100")])?;
        for i in 0..50 {
            p.send(BaseRecord::<(), String>::to(&to).payload(&format!("at {i}")).timestamp(base + i * 1000)).map_err(|e| e.0)?;
        }
        p.flush(PATIENCE)?;
        let c = consumer(&self.boot, &format!("{}-time", self.prefix), &[])?;
        let mut ask = TopicPartitionList::new();
        ask.add_partition_offset(&to, 0, Offset::Offset(base + 30_500))?;
        let got = c.offsets_for_times(ask, PATIENCE)?;
        want!(got.elements()[0].offset() == Offset::Offset(31), "the time of 30.5: {got:?}");
        c.assign(&got)?;
        let begun = Instant::now();
        loop {
            want!(begun.elapsed() < PATIENCE, "nothing read");
            let Some(m) = c.poll(Duration::from_millis(200)) else { continue };
            let m = m?;
            want!(m.payload() == Some(b"at 31") && m.timestamp().to_millis() == Some(base + 31_000), "{:?} of {:?}", m.payload(), m.timestamp());
            return Ok(());
        }
    }

    fn admin_calls(&self) {
        let a = format!("{}-admin", self.prefix);
        let opts = AdminOptions::new();
        let refused = |got: Vec<Option<RDKafkaErrorCode>>, code| -> Shown {
            want!(got == vec![Some(code)], "{got:?}, want {code:?}");
            Ok(())
        };
        check("admin: topics", || {
            self.topic("admin", 2)?;
            let make = |name: &str, rf: i32, opts: &AdminOptions| -> Result<_, KafkaError> {
                Ok(codes(block_on(self.admin.create_topics(&[NewTopic::new(name, 1, TopicReplication::Fixed(rf))], opts))?))
            };
            refused(make(&a, 1, &opts)?, RDKafkaErrorCode::TopicAlreadyExists)?;
            refused(make(&format!("{a}x"), 7, &opts)?, RDKafkaErrorCode::InvalidReplicationFactor)?;
            refused(make("a b", 1, &opts)?, RDKafkaErrorCode::InvalidTopic)?;
            want!(make(&format!("{a}dry"), 1, &AdminOptions::new().validate_only(true))? == vec![None], "validate only");
            let grow = |n| -> Result<_, KafkaError> { Ok(codes(block_on(self.admin.create_partitions(&[NewPartitions::new(&a, n)], &opts))?)) };
            want!(grow(4)? == vec![None], "create partitions");
            refused(grow(2)?, RDKafkaErrorCode::InvalidPartitions)?;
            let md = self.admin.inner().fetch_metadata(Some(&a), PATIENCE)?;
            want!(md.brokers().len() == 1 && md.topics()[0].partitions().len() == 4, "metadata");
            Ok(())
        });
        check("admin: configs", || {
            let set = block_on(self.admin.alter_configs(&[AlterConfig::new(ResourceSpecifier::Topic(&a)).set("retention.ms", "777000")], &opts))?;
            want!(set.iter().all(|r| r.is_ok()), "{set:?}");
            let begun = Instant::now();
            loop {
                let got = block_on(self.admin.describe_configs(&[ResourceSpecifier::Topic(&a)], &opts))?.remove(0).map_err(|e| format!("{e:?}"))?;
                let value = got.get("retention.ms").and_then(|e| e.value.clone());
                if value.as_deref() == Some("777000") && got.entries.len() > 25 {
                    return Ok(());
                }
                want!(begun.elapsed() < Duration::from_secs(5), "retention.ms is {value:?}");
            }
        });
        check("admin: delete records", || {
            self.produce(&a, "d", 400, &[])?;
            let mut to = TopicPartitionList::new();
            to.add_partition_offset(&a, 0, Offset::Offset(7))?;
            let got = block_on(self.admin.delete_records(&to, &opts))?;
            want!(got.elements()[0].error().is_ok() && got.elements()[0].offset() == Offset::Offset(7), "{got:?}");
            want!(self.admin.inner().fetch_watermarks(&a, 0, PATIENCE)?.0 == 7, "low watermark");
            Ok(())
        });
        check("B024 admin: groups", || {
            let group = format!("{}-groups", self.prefix);
            let c = consumer(&self.boot, &group, &[])?;
            c.subscribe(&[&a])?;
            let begun = Instant::now();
            loop {
                want!(begun.elapsed() < PATIENCE, "nothing read");
                if let Some(m) = c.poll(Duration::from_millis(200)) {
                    c.commit_message(&m?, CommitMode::Sync)?;
                    break;
                }
            }
            let list = self.admin.inner().fetch_group_list(Some(&group), PATIENCE)?;
            let g = &list.groups()[0];
            want!(g.state() == "Stable" && g.protocol_type() == "consumer" && g.members().len() == 1, "{} {}", g.state(), g.members().len());
            let drop_it = || -> Result<_, KafkaError> { Ok(codes(block_on(self.admin.delete_groups(&[&group], &opts))?)) };
            refused(drop_it()?, RDKafkaErrorCode::NonEmptyGroup)?;
            drop(c);
            want!(drop_it()? == vec![None], "delete group");
            refused(drop_it()?, RDKafkaErrorCode::GroupIdNotFound)
        });
        check("admin: delete topics", || {
            want!(codes(block_on(self.admin.delete_topics(&[&a], &opts))?) == vec![None], "delete");
            refused(codes(block_on(self.admin.delete_topics(&[&a], &opts))?), RDKafkaErrorCode::UnknownTopicOrPartition)
        });
    }
}

extern "C" fn stop(_: libc::c_int) {
    STOP.store(true, Ordering::SeqCst);
}

fn member(boot: &str, group: &str, topic: &str) -> Shown {
    unsafe { libc::signal(libc::SIGTERM, stop as *const () as libc::sighandler_t) };
    let strategy = std::env::var("JUDGE_STRATEGY").unwrap_or("range".into());
    let c = consumer(boot, group, &[("enable.auto.commit", "true"), ("auto.commit.interval.ms", "200"), ("partition.assignment.strategy", &strategy)])?;
    c.subscribe(&[topic])?;
    while !STOP.load(Ordering::SeqCst) {
        if let Some(Ok(m)) = c.poll(Duration::from_millis(100)) {
            println!("{}", String::from_utf8_lossy(m.payload().unwrap_or_default()));
        }
    }
    Ok(()) // the drop commits and leaves
}

fn main() -> Shown {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args[1] == "member" {
        return member(&args[0], &args[2], &args[3]);
    }
    let admin = ClientConfig::new().set("bootstrap.servers", &args[0]).create()?;
    let j = Judge { boot: args[0].clone(), prefix: args[1].clone(), admin };
    j.codecs();
    check("B038 nulls and headers", || j.nulls());
    check("B011 base offset 0 in every batch", || j.one_by_one());
    check("commit and resume", || j.resume());
    check("seek by time", || j.by_time());
    j.admin_calls();
    println!("done");
    Ok(())
}
