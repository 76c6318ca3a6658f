// Definitions shown on hover beside each number. Units stand with the number itself.

export const metrics = {
  streamsHealthy: { label: "Healthy", definition: "Streams that run and keep up, of all streams." },
  enginesOnline: {
    label: "Engines online",
    definition: "Engines that answer the control plane, of all enrolled.",
  },
  lcrRate: {
    label: "Rate",
    definition:
      "Logical change records (row changes) applied at the destination a second, since the last sample.",
  },
  streamRate: {
    label: "Rate",
    definition:
      "Logical change records (row changes) applied at the destination a second, since the last sample. Of several destinations: those captured at the source, once.",
  },
  sourceRate: {
    label: "Source's rate",
    definition:
      "Logical change records (row changes) captured at the source a second. Each destination applies the same ones, at its own rate.",
  },
  componentLcrRate: {
    label: "LCRs",
    definition: "Logical change records that passed this component a second.",
  },
  transactionRate: {
    label: "Transactions",
    definition: "Source transactions that passed this component a second.",
  },
  byteRate: { label: "Bytes", definition: "Bytes of LCR frames that passed this component a second." },
  latencyP50: {
    label: "Latency p50",
    definition:
      "Half of the transactions were committed at the destination within this time after their commit at the source. Of an idle stream: the last heartbeat.",
  },
  latencyP99: {
    label: "Latency p99",
    definition:
      "99 % of the transactions were committed at the destination within this time after their commit at the source. Of an idle stream: the last heartbeat.",
  },
  componentLatency: {
    label: "Latency",
    definition: "Time from the commit at the source until this component handled the transaction.",
  },
  backlogBytes: {
    label: "Backlog",
    definition:
      "WAL that the source has written and the destination has not applied, by the source's own word, of all databases and tables of its server: what of it belongs to the stream is known once it is read. Of several destinations the longest.",
  },
  standingBytes: {
    label: "WAL written since",
    definition:
      "WAL that the source's server has written since what is applied, of all its databases and tables: nothing reads or applies it now. The stream's own changes are only a part of it.",
  },
  backlogAge: {
    label: "Oldest",
    definition: "How long ago the source wrote the oldest change that is not applied.",
  },
  backlogGrowth: {
    label: "Growth",
    definition: "How fast the backlog grows, over the last minute; negative while it shrinks.",
  },
  backlogSeconds: {
    label: "Caught up in",
    definition: "How long the backlog takes at the present rate; unknown while nothing is applied.",
  },
  backlogFull: {
    label: "Full in",
    definition:
      "At the present growth: until the source gives up the stream's slot (max_slot_wal_keep_size), or until the destination's backlog on disk reaches queue_spill_limit_mb.",
  },
  retainedWal: {
    label: "WAL kept",
    definition:
      "WAL that the source keeps on its disk for the stream's slot, with the time when the source said so.",
  },
  errors: {
    label: "Errors",
    definition: "Transactions parked in the destination's error queue, waiting for a decision.",
  },
  spilledBacklog: {
    label: "On disk",
    definition:
      "What this destination has not taken yet and the engine keeps on its disk, compressed, of what queue_spill_limit_mb allows.",
  },
  spilledAge: { label: "Oldest", definition: "Age of the oldest change that waits for this destination." },
  queueDepth: {
    label: "Depth",
    definition: "LCRs in the queue that apply has not taken yet, of those it can hold.",
  },
  spill: {
    label: "Spilled",
    definition:
      "LCRs moved from memory to the engine's disk since the stream started: those of large or long open transactions, or those that a slow destination has not taken.",
  },
  wireRate: {
    label: "Network",
    definition: "Bytes a second on the network between the two engines, compressed and encrypted.",
  },
  roundTrip: {
    label: "Round trip",
    definition: "From sending a batch to the other engine until its acknowledgement.",
  },
  spillRate: { label: "Spill rate", definition: "LCRs moved to the engine's disk a second." },
  spillBytes: {
    label: "Spill on disk",
    definition: "Disk space that spilled LCRs take up now, compressed.",
  },
  spillAge: { label: "Spill age", definition: "How long the oldest spilled LCRs have been on disk." },
  watermarkLag: {
    label: "Watermark lag",
    definition: "Age of the oldest transaction that is not yet committed at the destination.",
  },
  waitingGroups: {
    label: "Waiting groups",
    definition: "Groups of transactions that wait for a free applier or for a transaction they depend on.",
  },
  deadlocks: {
    label: "Deadlocks",
    definition:
      "Deadlocks in which this applier gave way, since the stream started. Its transactions were executed again.",
  },
  openTransactions: {
    label: "Open txn",
    definition: "Source transactions of which LCRs have come but not yet the commit.",
  },
  heldBytes: { label: "Held", definition: "Memory that LCRs of transactions not yet applied take up." },
  rowsCopied: { label: "Rows", definition: "Rows copied so far, of all tables." },
  bytesCopied: { label: "Size", definition: "Bytes copied so far, as they came over the wire." },
  copyRate: {
    label: "Rate",
    definition: "Rows copied a second, of the tables that are being copied, each since it began.",
  },
  indexesBuilt: {
    label: "Indexes",
    definition:
      "Keys, constraints, indexes and foreign keys that the engine has made after the rows, of those that it makes.",
  },
  timeLeft: {
    label: "Rows in",
    definition: "Until the table's rows are there: those still to copy divided by the present rate.",
  },
  rowsLeft: {
    label: "All rows in",
    definition:
      "Rows still to copy divided by the present rate, without indexes and foreign keys. Unknown where a table was never analysed.",
  },
} as const;

export type MetricName = keyof typeof metrics;
