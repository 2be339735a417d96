// kafkajs as judge: judge.js BOOTSTRAP PREFIX, or, as a member of a group, judge.js BOOTSTRAP member GROUP TOPIC.
// One line for each thing shown; ../../clients_test.go makes a test of each and says what the topics are.
'use strict'
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, AssignerProtocol, logLevel } = require('kafkajs')
const lz4 = require('lz4js')
const zstd = require('@bokuweb/zstd-wasm')
CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  // lz4js says that its blocks are linked, and packs each alone. Kafka refuses linked ones (compat/lz4_test.go).
  compress: async (encoder) => {
    const frame = Buffer.from(lz4.compress(encoder.buffer))
    if (frame.readUInt32BE(4) >>> 8 === 0x4070df) frame.set([0x60, 0x70, 0x73], 4)
    return frame
  },
  decompress: async (buffer) => Buffer.from(lz4.decompress(buffer)),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from(zstd.compress(encoder.buffer, 3)),
  decompress: async (buffer) => Buffer.from(zstd.decompress(buffer)),
})

const [boot, prefix, ...rest] = process.argv.slice(2)
const perRound = 60
const kafka = new Kafka({ clientId: 'judge', brokers: [boot], logLevel: process.env.JUDGE_LOG ? logLevel.DEBUG : logLevel.NOTHING, retry: { initialRetryTime: 50, retries: 8 } })

const sleep = (ms) => new Promise((go) => setTimeout(go, ms))
const value = (p, i) => `${p}${i}-${'text '.repeat(20)}`
function assert (good, ...why) {
  if (!good) throw new Error(why.map((w) => (typeof w === 'string' ? w : JSON.stringify(w))).join(' ') || 'wrong')
}
async function check (name, f) {
  try {
    await f()
    console.log('ok', name)
  } catch (e) {
    const at = (e.stack || '').split('\n').find((l) => l.includes('judge.js')) || ''
    console.log('FAIL', name, '|', `${e.name}: ${e.message} ${at.trim()}`.replace(/\n/g, ' '))
  }
}
async function refused (type, promise) {
  try {
    await promise
  } catch (e) {
    const types = [e.type, e.cause && e.cause.type, ...(e.errors || []).map((x) => x.type), ...(e.groups || []).map((g) => g.error && g.error.type)]
    assert(types.includes(type), 'wanted', type, 'got', types, e.message)
    return
  }
  throw new Error(`was accepted, wanted ${type}`)
}

let admin
async function topic (name, numPartitions = 1) {
  name = `${prefix}-${name}`
  await admin.createTopics({ topics: [{ topic: name, numPartitions, replicationFactor: 1 }] })
  return name
}

async function produce (topic, p, n, { acks = -1, compression = CompressionTypes.None, idempotent = false } = {}) {
  const producer = kafka.producer({ idempotent, maxInFlightRequests: 1 })
  await producer.connect()
  const messages = []
  for (let i = 0; i < n; i++) messages.push({ key: `k${i}`, value: value(p, i) })
  await producer.send({ topic, acks, compression, messages })
  await producer.disconnect()
}

// consume reads until take says that it has enough; take may be asked for more than one message after that.
async function consume (groupId, topic, take, { seek, commit = true } = {}) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500, maxWaitTimeInMs: 200 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  let enough, failed
  const end = new Promise((resolve, reject) => { enough = resolve; failed = reject })
  let finished = false
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      if (finished) return
      try {
        if (!take(message, partition)) return
        finished = true
        if (commit) await consumer.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1), metadata: 'm' }])
        enough()
      } catch (e) {
        failed(e)
      }
    },
  })
  if (seek) for (const s of seek) consumer.seek({ topic, ...s })
  const patience = setTimeout(() => failed(new Error('nothing more for 30 s')), 30000)
  try {
    await end
  } finally {
    clearTimeout(patience)
    await consumer.disconnect()
  }
}

async function ends (topic) {
  return (await admin.fetchTopicOffsets(topic)).reduce((sum, p) => sum + Number(p.offset), 0)
}

async function codecs () {
  const all = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD }
  for (const [name, compression] of Object.entries(all)) {
    const to = `${prefix}-${name}`
    for (const acks of [0, 1, -1]) {
      await check(`produce ${name} acks=${acks}`, () => produce(to, `${name}${acks}-`, perRound, { acks, compression }))
    }
    await check(`produce ${name} idempotent`, () => produce(to, `${name}idem-`, perRound, { compression, idempotent: true }))
    await check(`consume ${name}`, async () => {
      for (const until = Date.now() + 10000; await ends(to) < 4 * perRound && Date.now() < until;) await sleep(50)
      const seen = new Set()
      await consume(`${to}-read`, to, (m) => seen.add(m.value.toString()).size === 4 * perRound)
    })
  }
}

async function nulls () {
  const to = `${prefix}-nulls`
  const three = [null, Buffer.alloc(0), Buffer.from('x')]
  const producer = kafka.producer()
  await producer.connect()
  for (const key of three) {
    for (const value of three) {
      // a header of several values is written as several headers
      await producer.send({ topic: to, messages: [{ key, value, headers: { h: [Buffer.alloc(0), Buffer.from('x')] } }] })
    }
  }
  await producer.disconnect()
  const got = []
  await consume(`${to}-read`, to, (m) => got.push(m) === 9)
  const same = (a, b) => (a === null) === (b === null) && String(a) === String(b)
  got.forEach((m, i) => {
    assert(same(m.key, three[Math.floor(i / 3)]) && same(m.value, three[i % 3]), 'record', i, m.key, m.value)
    assert(m.headers.h.length === 2 && m.headers.h[0].length === 0 && m.headers.h[1].toString() === 'x', 'record', i, m.headers)
  })
}

async function oneByOne () {
  const to = await topic('one')
  const producer = kafka.producer()
  await producer.connect()
  for (let i = 0; i < 3; i++) {
    const [r] = await producer.send({ topic: to, messages: [{ value: `${i}` }] })
    assert(r.baseOffset === String(i), r)
  }
  await producer.disconnect()
  let next = 0
  await consume(`${to}-read`, to, (m) => {
    assert(m.offset === String(next) && m.value.toString() === String(next), m.offset, m.value.toString())
    return ++next === 3
  })
}

async function bigBatch () { // B002: kafkajs asks for at most maxBytesPerPartition, and must move on
  const to = await topic('big')
  await produce(to, 'b', 2000)
  const consumer = kafka.consumer({ groupId: `${to}-read`, maxBytesPerPartition: 100, maxBytes: 100, maxWaitTimeInMs: 200 })
  await consumer.connect()
  await consumer.subscribe({ topics: [to], fromBeginning: true })
  let n = 0
  await consumer.run({ autoCommit: false, eachMessage: async () => { n++ } })
  for (const until = Date.now() + 20000; n < 2000 && Date.now() < until;) await sleep(20)
  await consumer.disconnect()
  assert(n === 2000, 'read', n)
}

async function resume () {
  const to = await topic('resume')
  const groupId = `${prefix}-resume`
  await produce(to, 'r', 100)
  let next = 0
  for (let round = 1; round <= 3; round++) {
    await consume(groupId, to, (m) => {
      assert(m.offset === String(next), 'offset', m.offset, 'want', next)
      return ++next === round * 25
    })
  }
  const [got] = await admin.fetchOffsets({ groupId, topics: [to] })
  assert(got.partitions[0].offset === '75' && got.partitions[0].metadata === 'm', got)
}

async function byTime () {
  const to = await topic('time')
  const base = Date.now() - 60000
  const producer = kafka.producer()
  await producer.connect()
  const messages = []
  for (let i = 0; i < 50; i++) messages.push({ value: `at ${i}`, timestamp: String(base + i * 1000) })
  await producer.send({ topic: to, messages, compression: CompressionTypes.GZIP })
  await producer.disconnect()
  const [at] = await admin.fetchTopicOffsetsByTimestamp(to, base + 30500)
  assert(at.offset === '31', at)
  const [late] = await admin.fetchTopicOffsetsByTimestamp(to, base + 999999)
  assert(late.offset === '50', late) // kafkajs turns -1 into the end
  let first
  await consume(`${to}-read`, to, (m) => { first = first || m; return true }, { seek: [{ partition: 0, offset: at.offset }] })
  assert(first.value.toString() === 'at 31' && first.timestamp === String(base + 31000), first.offset, first.timestamp)
}

async function adminCalls () {
  const a = `${prefix}-admin`
  await check('admin: topics', async () => {
    await topic('admin', 2)
    assert((await admin.listTopics()).includes(a))
    assert(!await admin.createTopics({ topics: [{ topic: a }] }), 'made twice') // kafkajs tells it by false
    await refused('INVALID_REPLICATION_FACTOR', admin.createTopics({ topics: [{ topic: a + 'x', replicationFactor: 7 }] }))
    await refused('INVALID_TOPIC_EXCEPTION', admin.createTopics({ topics: [{ topic: 'a b' }] }))
    await admin.createTopics({ validateOnly: true, waitForLeaders: false, topics: [{ topic: a + 'dry' }] })
    await admin.createPartitions({ topicPartitions: [{ topic: a, count: 4 }] })
    await refused('INVALID_PARTITIONS', admin.createPartitions({ topicPartitions: [{ topic: a, count: 2 }] }))
    const { topics: [md] } = await admin.fetchTopicMetadata({ topics: [a] })
    assert(md.partitions.length === 4 && md.partitions.every((p) => p.leader >= 0), md)
  })
  await check('admin: cluster', async () => {
    const c = await admin.describeCluster()
    assert(c.brokers.length === 1 && c.clusterId && c.controller === c.brokers[0].nodeId, c)
  })
  await check('admin: configs', async () => {
    await admin.alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: a, configEntries: [{ name: 'retention.ms', value: '777000' }] }] })
    const ask = async () => (await admin.describeConfigs({ includeSynonyms: true, resources: [{ type: ConfigResourceTypes.TOPIC, name: a }] })).resources[0].configEntries
    const value = (entries) => entries.find((e) => e.configName === 'retention.ms').configValue
    for (const until = Date.now() + 5000; value(await ask()) !== '777000';) assert(Date.now() < until, 'not within 5 s')
    assert((await ask()).length > 25)
  })
  await check('admin: list offsets, delete records', async () => {
    await produce(a, 'd', 400)
    const before = await admin.fetchTopicOffsets(a)
    assert(before.length === 4 && before.every((p) => p.low === '0' && Number(p.high) > 10), before)
    await admin.deleteTopicRecords({ topic: a, partitions: [{ partition: 0, offset: '7' }] })
    const after = await admin.fetchTopicOffsets(a)
    assert(after.find((p) => p.partition === 0).low === '7', after)
  })
  await check('admin: reassignments, acls', async () => {
    await admin.listPartitionReassignments({ topics: [{ topic: a, partitions: [0] }] })
    await refused('SECURITY_DISABLED', admin.describeAcls({ resourceType: 1, resourcePatternType: 1, operation: 1, permissionType: 1 }))
  })
  await check('B024 admin: groups', async () => {
    const groupId = `${a}-group`
    const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500 })
    await consumer.connect()
    await consumer.subscribe({ topics: [a], fromBeginning: true })
    let seen = 0
    await consumer.run({ eachMessage: async () => { seen++ } })
    for (const until = Date.now() + 20000; !seen;) {
      assert(Date.now() < until, 'nothing read')
      await sleep(20)
    }
    const { groups } = await admin.listGroups()
    assert(groups.some((g) => g.groupId === groupId && g.protocolType === 'consumer'), 'not listed')
    const described = (await admin.describeGroups([groupId, groupId + '-none'])).groups
    const [d, none] = [groupId, groupId + '-none'].map((id) => described.find((g) => g.groupId === id)) // Kafka answers in any order
    assert(d.state === 'Stable' && d.members.length === 1 && none.state === 'Dead', d.state, none.state)
    const parts = AssignerProtocol.MemberAssignment.decode(d.members[0].memberAssignment).assignment[a]
    assert(parts.length === 4, parts)
    await refused('NON_EMPTY_GROUP', admin.deleteGroups([groupId]))
    await consumer.disconnect()
    await admin.setOffsets({ groupId, topic: a, partitions: [{ partition: 0, offset: '9' }] })
    const [got] = await admin.fetchOffsets({ groupId, topics: [a] })
    assert(got.partitions.find((p) => p.partition === 0).offset === '9', got)
    await admin.resetOffsets({ groupId, topic: a, earliest: true })
    await admin.deleteGroups([groupId])
    await refused('GROUP_ID_NOT_FOUND', admin.deleteGroups([groupId]))
  })
  await check('admin: delete topics', async () => {
    await admin.deleteTopics({ topics: [a] })
    const hasty = kafka.admin({ retry: { retries: 0 } }) // kafkajs tries again what it says cannot be
    await hasty.connect()
    await refused('UNKNOWN_TOPIC_OR_PARTITION', hasty.deleteTopics({ topics: [a] }))
    await hasty.disconnect()
  })
}

async function main () {
  await zstd.init()
  admin = kafka.admin()
  await admin.connect()
  await codecs()
  await check('B038 nulls and headers', nulls)
  await check('B011 base offset 0 in every batch', oneByOne)
  await check('B002 a batch beyond every limit', bigBatch)
  await check('commit and resume', resume)
  await check('seek by time', byTime)
  await adminCalls()
  await admin.disconnect()
  console.log('done')
  process.exit(0) // a check that failed may have left a consumer
}

async function member (groupId, topic) {
  await zstd.init()
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500, rebalanceTimeout: 10000, maxWaitTimeInMs: 200 })
  process.on('SIGTERM', async () => {
    await consumer.disconnect() // commits, leaves
    process.exit(0)
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({ autoCommitInterval: 200, eachMessage: async ({ message }) => { console.log(message.value.toString()) } })
}

const fatal = (e) => { console.log('FAIL start |', e.stack.replace(/\n/g, ' ')); process.exit(1) }
if (prefix === 'member') member(...rest).catch(fatal)
else main().catch(fatal)
