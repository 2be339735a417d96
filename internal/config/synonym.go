package config

// brokerSynonyms are the broker keys that have others standing in for them, the
// strongest first, in the order DescribeConfigs of Kafka 4.4 lists them.
var brokerSynonyms = map[string][]string{
	"log.retention.ms":      {"log.retention.minutes", "log.retention.hours"},
	"log.retention.minutes": {"log.retention.hours"},
	"log.roll.ms":           {"log.roll.hours"},
	"log.roll.jitter.ms":    {"log.roll.jitter.hours"},
	"log.flush.interval.ms": {"log.flush.scheduler.interval.ms"},
	"log.dirs":              {"log.dir"},
	"node.id":               {"broker.id"},
}

// hidden are pairs of brokerSynonyms that act but that Kafka 4.4 leaves out of
// the list of synonyms it sends.
var hidden = setOf("log.dirs", "node.id")

const (
	minuteMs = 60 * 1000
	hourMs   = 60 * minuteMs
)

// synonym is a broker key that gives a topic key's default.
type synonym struct {
	name  string
	times int64 // the broker's number is multiplied by this; 0: taken as it is
}

// topicSynonyms is Kafka's mapping from topic keys to broker keys, the strongest
// first.
var topicSynonyms = map[string][]synonym{
	"cleanup.policy":                  {{"log.cleanup.policy", 0}},
	"compression.gzip.level":          {{"compression.gzip.level", 0}},
	"compression.lz4.level":           {{"compression.lz4.level", 0}},
	"compression.type":                {{"compression.type", 0}},
	"compression.zstd.level":          {{"compression.zstd.level", 0}},
	"delete.retention.ms":             {{"log.cleaner.delete.retention.ms", 0}},
	"file.delete.delay.ms":            {{"log.segment.delete.delay.ms", 0}},
	"flush.messages":                  {{"log.flush.interval.messages", 0}},
	"flush.ms":                        {{"log.flush.interval.ms", 0}, {"log.flush.scheduler.interval.ms", 0}},
	"index.interval.bytes":            {{"log.index.interval.bytes", 0}},
	"local.retention.bytes":           {{"log.local.retention.bytes", 0}},
	"local.retention.ms":              {{"log.local.retention.ms", 0}},
	"max.compaction.lag.ms":           {{"log.cleaner.max.compaction.lag.ms", 0}},
	"max.decompressed.message.bytes":  {{"max.decompressed.message.bytes", 0}},
	"max.message.bytes":               {{"message.max.bytes", 0}},
	"message.timestamp.after.max.ms":  {{"log.message.timestamp.after.max.ms", 0}},
	"message.timestamp.before.max.ms": {{"log.message.timestamp.before.max.ms", 0}},
	"message.timestamp.type":          {{"log.message.timestamp.type", 0}},
	"min.cleanable.dirty.ratio":       {{"log.cleaner.min.cleanable.ratio", 0}},
	"min.compaction.lag.ms":           {{"log.cleaner.min.compaction.lag.ms", 0}},
	"min.insync.replicas":             {{"min.insync.replicas", 0}},
	"preallocate":                     {{"log.preallocate", 0}},
	"remote.copy.lag.bytes":           {{"log.remote.copy.lag.bytes", 0}},
	"remote.copy.lag.ms":              {{"log.remote.copy.lag.ms", 0}},
	"retention.bytes":                 {{"log.retention.bytes", 0}},
	"retention.ms":                    {{"log.retention.ms", 0}, {"log.retention.minutes", minuteMs}, {"log.retention.hours", hourMs}},
	"segment.bytes":                   {{"log.segment.bytes", 0}},
	"segment.index.bytes":             {{"log.index.size.max.bytes", 0}},
	"segment.jitter.ms":               {{"log.roll.jitter.ms", 0}, {"log.roll.jitter.hours", hourMs}},
	"segment.ms":                      {{"log.roll.ms", 0}, {"log.roll.hours", hourMs}},
	"unclean.leader.election.enable":  {{"unclean.leader.election.enable", 0}},
}
