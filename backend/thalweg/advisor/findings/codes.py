"""The codes of findings. Stable: cures, stored runs and the rig's causes name them."""

from enum import StrEnum


class FindingCode(StrEnum):
    """The catalogue explains each (advisor/findings/catalogue.py, docs/reference/findings.md). UNKNOWN: a finding of a
    stored run that another version took."""

    ABORTED = "aborted"
    APPLY_COMMIT_ORDER = "apply_commit_order"
    APPLY_COORDINATOR_CPU = "apply_coordinator_cpu"
    APPLY_DATA_LAYER_MISSING = "apply_data_layer_missing"
    APPLY_DATA_LAYER_OFF = "apply_data_layer_off"
    APPLY_DEPENDENCY_CHAIN = "apply_dependency_chain"
    APPLY_DISK_READS = "apply_disk_reads"
    APPLY_LOCK_CONTENTION = "apply_lock_contention"
    APPLY_MISSING_INDEX = "apply_missing_index"
    APPLY_NETWORK = "apply_network"
    APPLY_PARALLELISM = "apply_parallelism"
    APPLY_READER_CPU = "apply_reader_cpu"
    APPLY_SLOW_FLUSH = "apply_slow_flush"
    APPLY_SMALL_GROUPS = "apply_small_groups"
    APPLY_SPILL = "apply_spill"
    APPLY_STANDBY = "apply_standby"
    APPLY_STANDSTILL = "apply_standstill"
    APPLY_TINY_TRANSACTIONS = "apply_tiny_transactions"
    APPLY_TRIGGER = "apply_trigger"
    ARCHIVE_LAGS = "archive_lags"
    CAPTURE_CPU = "capture_cpu"
    CAPTURE_DECODE = "capture_decode"
    CAPTURE_NETWORK = "capture_network"
    CAPTURE_SHIPMENT = "capture_shipment"
    DESTINATION_DOWN = "destination_down"
    ENGINE_DOWN = "engine_down"
    ENGINE_TROUBLE = "engine_trouble"
    FULL_BACKLOG = "full_backlog"
    FULL_BACKLOG_ELSEWHERE = "full_backlog_elsewhere"
    LINK_DOWN = "link_down"
    NETWORK_LIMIT = "network_limit"
    NETWORK_WINDOW = "network_window"
    PARKING = "parking"
    RECEIVER_CPU = "receiver_cpu"
    SENDER_CPU = "sender_cpu"
    SOURCE_DOWN = "source_down"
    SOURCE_IDLE = "source_idle"
    STAGING_FULL = "staging_full"
    START_BLOCKED = "start_blocked"
    WAL_IMAGES = "wal_images"
    UNKNOWN = "unknown"

    @classmethod
    def _missing_(cls, value: object) -> "FindingCode":
        return cls.UNKNOWN
