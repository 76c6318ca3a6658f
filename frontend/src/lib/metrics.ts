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
      "Logical change records (row changes) applied at the destination per second, since the last sample.",
  },
  streamRate: {
    label: "Rate",
    definition:
      "Logical change records (row changes) applied at the destination per second, since the last sample. With several destinations: those captured at the source, counted once.",
  },
  sourceRate: {
    label: "Source's rate",
    definition:
      "Logical change records (row changes) captured at the source per second. Each destination applies the same ones, at its own rate.",
  },
  componentLcrRate: {
    label: "LCRs",
    definition: "Logical change records that passed this component per second.",
  },
  transactionRate: {
    label: "Transactions",
    definition: "Source transactions that passed this component per second.",
  },
  byteRate: { label: "Bytes", definition: "Bytes of LCR frames that passed this component per second." },
  latencyP50: {
    label: "Latency p50",
    definition:
      "Half of the transactions were committed at the destination within this time after their commit at the source. For an idle stream: the last heartbeat. A stream with several destinations shows the slowest one's.",
  },
  latencyP99: {
    label: "Latency p99",
    definition:
      "99 % of the transactions were committed at the destination within this time after their commit at the source. For an idle stream: the last heartbeat. A stream with several destinations shows the slowest one's.",
  },
  componentLatency: {
    label: "Latency",
    definition: "Time from the commit at the source until this component handled the transaction.",
  },
  lagBytes: {
    label: "Lag",
    definition:
      "WAL that the source has written and the destination has not applied, as the source reports it. It covers all databases and tables of the source's server; how much of it belongs to the stream is known only once it is read. With several destinations: the largest.",
  },
  standingBytes: {
    label: "WAL written since",
    definition:
      "WAL that the source's server has written since the last applied change, for all its databases and tables. Nothing applies it now, and the stream's own changes are only a part of it.",
  },
  lagAge: {
    label: "Oldest",
    definition: "How long ago the source wrote the oldest change that is not applied.",
  },
  lagGrowth: {
    label: "Growth",
    definition: "How fast the lag grows, over the last minute; negative while it shrinks.",
  },
  lagSeconds: {
    label: "Caught up in",
    definition: "Time until the lag is gone at the present rate; unknown while nothing is applied.",
  },
  lagFull: {
    label: "Full in",
    definition:
      "At the present growth, until the first of these: the source gives up the stream's slot (max_slot_wal_keep_size), the destination's backlog on disk reaches queue_spill_limit_mb, the WAL staged for log mining reaches staging_limit_mb.",
  },
  retainedWal: {
    label: "WAL kept",
    definition:
      "WAL that the source keeps on its disk for the stream's slot, with the time when the source reported it.",
  },
  errors: {
    label: "Errors",
    definition:
      "Transactions parked in the destination's error queue, waiting for a decision, and when the oldest of them was parked.",
  },
  backlogOnDisk: {
    label: "On disk",
    definition:
      "Changes that this destination has not taken yet and that the engine keeps on its disk, compressed, of the space that queue_spill_limit_mb allows.",
  },
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
    definition: "Bytes per second on the network between the two engines, compressed and encrypted.",
  },
  roundTrip: {
    label: "Round trip",
    definition: "From sending a batch to the other engine until its acknowledgement.",
  },
  spillRate: { label: "Spill rate", definition: "LCRs moved to the engine's disk per second." },
  spillBytes: {
    label: "Spill on disk",
    definition: "Disk space that spilled LCRs take up now, compressed.",
  },
  diskAge: {
    label: "On disk for",
    definition: "How long the oldest of the LCRs on the engine's disk have been there.",
  },
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
    definition: "Source transactions whose LCRs have arrived, but whose commit has not.",
  },
  heldBytes: { label: "Held", definition: "Memory that LCRs of transactions not yet applied take up." },
  rowsCopied: { label: "Rows", definition: "Rows copied so far, of all tables." },
  bytesCopied: { label: "Size", definition: "Bytes copied so far, as they came over the wire." },
  copyRate: {
    label: "Rate",
    definition: "Rows copied per second, over the tables that are being copied, each since its copy began.",
  },
  indexesBuilt: {
    label: "Indexes",
    definition:
      "Keys, constraints, indexes and foreign keys that the engine has built after the rows, of all that it builds.",
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
  indexesLeft: {
    label: "Indexes in",
    definition:
      "Bytes of rows that missing indexes, constraints and foreign keys read, divided by the rate measured in this copy. An estimate; unknown before the first one is built.",
  },
  copyLeft: {
    label: "Copy done in",
    definition: "Rows, then indexes, constraints and foreign keys. Unknown while either is unknown.",
  },
} as const;

export type MetricName = keyof typeof metrics;
