"""The errors of engines by name. Written by `make docs` from engine/contract/errors.json. Do not edit."""

from enum import StrEnum


class ErrorSide(StrEnum):
    """Where the trouble is."""

    SOURCE = "source"
    DESTINATION = "destination"
    LINK = "link"
    ENGINE = "engine"


class ErrorCode(StrEnum):
    ADDRESS_NOT_ALLOWED = "address_not_allowed"
    APPLY_CONFLICT = "apply_conflict"
    APPLY_FAILED = "apply_failed"
    AUTHENTICATION_FAILED = "authentication_failed"
    BACKLOG_DAMAGED = "backlog_damaged"
    BOOKKEEPING_NOT_TRUSTED = "bookkeeping_not_trusted"
    CAPTURE_MEMORY_REACHED = "capture_memory_reached"
    CERTIFICATE_REJECTED = "certificate_rejected"
    CERTIFICATE_UNUSABLE = "certificate_unusable"
    CHANGES_NOT_CAPTURED = "changes_not_captured"
    CODE_NOT_ACCEPTED = "code_not_accepted"
    CONNECTION_LOST = "connection_lost"
    CONNECTION_POOLER = "connection_pooler"
    CONNECTION_SETTING_REFUSED = "connection_setting_refused"
    CORRUPT_FRAME = "corrupt_frame"
    DATABASE_BUSY = "database_busy"
    DATABASE_ERROR = "database_error"
    DATABASE_UNREACHABLE = "database_unreachable"
    DESCRIPTORS_EXHAUSTED = "descriptors_exhausted"
    DESIRED_STATE_CONFLICT = "desired_state_conflict"
    DESTINATION_READ_ONLY = "destination_read_only"
    DESTINATION_TABLE_DIFFERS = "destination_table_differs"
    DESTINATION_TABLE_NOT_EMPTY = "destination_table_not_empty"
    DISK_FULL = "disk_full"
    ENGINE_STOPPING = "engine_stopping"
    ENGINE_UNREACHABLE = "engine_unreachable"
    FILE_ERROR = "file_error"
    FULL_PAGE_WRITES_OFF = "full_page_writes_off"
    IDENTITY_MISSING = "identity_missing"
    IDENTITY_REFUSED = "identity_refused"
    INITIAL_COPY_INCONSISTENT = "initial_copy_inconsistent"
    INSUFFICIENT_PRIVILEGE = "insufficient_privilege"
    INVALID_REQUEST = "invalid_request"
    LINK_LOST = "link_lost"
    LINK_PROTOCOL_VIOLATION = "link_protocol_violation"
    LINK_REFUSED = "link_refused"
    LINK_VERSION_UNSUPPORTED = "link_version_unsupported"
    MARKER_REFUSED = "marker_refused"
    MISSING_DATABASE = "missing_database"
    MISSING_TABLE = "missing_table"
    MISSING_TYPE = "missing_type"
    NOT_FOUND = "not_found"
    OUTPUT_PLUGIN_UNAVAILABLE = "output_plugin_unavailable"
    PARKED_BEHIND = "parked_behind"
    PARKED_FREED = "parked_freed"
    PORT_IN_USE = "port_in_use"
    POSITION_GAP = "position_gap"
    PROTOCOL_VIOLATION = "protocol_violation"
    PUBLICATION_LOST = "publication_lost"
    RECEIVER_RESTARTED = "receiver_restarted"
    REPLICA_IDENTITY_MISSING = "replica_identity_missing"
    REQUEST_TOO_LARGE = "request_too_large"
    RESOLUTION_REFUSED = "resolution_refused"
    RULE_FAILED = "rule_failed"
    RULE_REFUSED = "rule_refused"
    RULE_UNDECIDABLE = "rule_undecidable"
    SEARCH_BUSY = "search_busy"
    SEARCH_OVERTAKEN = "search_overtaken"
    SEARCH_REFUSED = "search_refused"
    SENDER_RESTARTED = "sender_restarted"
    SLOT_IN_USE = "slot_in_use"
    SLOT_LIMIT_REACHED = "slot_limit_reached"
    SLOT_LOST = "slot_lost"
    SOURCE_CHANGED = "source_changed"
    SOURCE_DIVERGED = "source_diverged"
    SOURCE_READ_ONLY = "source_read_only"
    SOURCE_STANDBY_BEHIND = "source_standby_behind"
    SOURCE_STANDBY_MISSING = "source_standby_missing"
    SPILL_LIMIT_REACHED = "spill_limit_reached"
    STATE_DIRECTORY_FAILED = "state_directory_failed"
    STREAM_IN_USE = "stream_in_use"
    TABLE_TROUBLE = "table_trouble"
    TABLE_UNPUBLISHED = "table_unpublished"
    TRANSFORMATION_REFUSED = "transformation_refused"
    UNAUTHORIZED = "unauthorized"
    UNKNOWN_DESTINATION = "unknown_destination"
    UNKNOWN_ERROR_TRANSACTION = "unknown_error_transaction"
    UNKNOWN_SEARCH = "unknown_search"
    UNKNOWN_STREAM = "unknown_stream"
    UNKNOWN_TABLE = "unknown_table"
    UNSUPPORTED_TABLE = "unsupported_table"
    UNSUPPORTED_VERSION = "unsupported_version"
    WAL_ARCHIVE_FAILED = "wal_archive_failed"
    WAL_INCOMPLETE = "wal_incomplete"
    WAL_LEVEL_TOO_LOW = "wal_level_too_low"


SIDES = {
    ErrorCode.APPLY_CONFLICT: ErrorSide.DESTINATION,
    ErrorCode.APPLY_FAILED: ErrorSide.DESTINATION,
    ErrorCode.BACKLOG_DAMAGED: ErrorSide.ENGINE,
    ErrorCode.BOOKKEEPING_NOT_TRUSTED: ErrorSide.DESTINATION,
    ErrorCode.CAPTURE_MEMORY_REACHED: ErrorSide.SOURCE,
    ErrorCode.CERTIFICATE_REJECTED: ErrorSide.LINK,
    ErrorCode.CERTIFICATE_UNUSABLE: ErrorSide.ENGINE,
    ErrorCode.CHANGES_NOT_CAPTURED: ErrorSide.ENGINE,
    ErrorCode.CODE_NOT_ACCEPTED: ErrorSide.SOURCE,
    ErrorCode.CORRUPT_FRAME: ErrorSide.ENGINE,
    ErrorCode.DESCRIPTORS_EXHAUSTED: ErrorSide.ENGINE,
    ErrorCode.DESIRED_STATE_CONFLICT: ErrorSide.ENGINE,
    ErrorCode.DESTINATION_READ_ONLY: ErrorSide.DESTINATION,
    ErrorCode.DESTINATION_TABLE_DIFFERS: ErrorSide.DESTINATION,
    ErrorCode.DESTINATION_TABLE_NOT_EMPTY: ErrorSide.DESTINATION,
    ErrorCode.DISK_FULL: ErrorSide.ENGINE,
    ErrorCode.ENGINE_STOPPING: ErrorSide.ENGINE,
    ErrorCode.ENGINE_UNREACHABLE: ErrorSide.LINK,
    ErrorCode.FILE_ERROR: ErrorSide.ENGINE,
    ErrorCode.FULL_PAGE_WRITES_OFF: ErrorSide.SOURCE,
    ErrorCode.IDENTITY_MISSING: ErrorSide.ENGINE,
    ErrorCode.IDENTITY_REFUSED: ErrorSide.ENGINE,
    ErrorCode.INITIAL_COPY_INCONSISTENT: ErrorSide.DESTINATION,
    ErrorCode.INVALID_REQUEST: ErrorSide.ENGINE,
    ErrorCode.LINK_LOST: ErrorSide.LINK,
    ErrorCode.LINK_PROTOCOL_VIOLATION: ErrorSide.LINK,
    ErrorCode.LINK_REFUSED: ErrorSide.LINK,
    ErrorCode.LINK_VERSION_UNSUPPORTED: ErrorSide.LINK,
    ErrorCode.MARKER_REFUSED: ErrorSide.ENGINE,
    ErrorCode.MISSING_TYPE: ErrorSide.DESTINATION,
    ErrorCode.NOT_FOUND: ErrorSide.ENGINE,
    ErrorCode.OUTPUT_PLUGIN_UNAVAILABLE: ErrorSide.SOURCE,
    ErrorCode.PARKED_BEHIND: ErrorSide.DESTINATION,
    ErrorCode.PARKED_FREED: ErrorSide.DESTINATION,
    ErrorCode.PORT_IN_USE: ErrorSide.ENGINE,
    ErrorCode.POSITION_GAP: ErrorSide.SOURCE,
    ErrorCode.PROTOCOL_VIOLATION: ErrorSide.SOURCE,
    ErrorCode.PUBLICATION_LOST: ErrorSide.SOURCE,
    ErrorCode.RECEIVER_RESTARTED: ErrorSide.LINK,
    ErrorCode.REPLICA_IDENTITY_MISSING: ErrorSide.SOURCE,
    ErrorCode.REQUEST_TOO_LARGE: ErrorSide.ENGINE,
    ErrorCode.RESOLUTION_REFUSED: ErrorSide.ENGINE,
    ErrorCode.RULE_FAILED: ErrorSide.SOURCE,
    ErrorCode.RULE_REFUSED: ErrorSide.ENGINE,
    ErrorCode.RULE_UNDECIDABLE: ErrorSide.SOURCE,
    ErrorCode.SEARCH_BUSY: ErrorSide.ENGINE,
    ErrorCode.SEARCH_OVERTAKEN: ErrorSide.ENGINE,
    ErrorCode.SEARCH_REFUSED: ErrorSide.ENGINE,
    ErrorCode.SENDER_RESTARTED: ErrorSide.LINK,
    ErrorCode.SLOT_IN_USE: ErrorSide.SOURCE,
    ErrorCode.SLOT_LIMIT_REACHED: ErrorSide.SOURCE,
    ErrorCode.SLOT_LOST: ErrorSide.SOURCE,
    ErrorCode.SOURCE_CHANGED: ErrorSide.SOURCE,
    ErrorCode.SOURCE_DIVERGED: ErrorSide.SOURCE,
    ErrorCode.SOURCE_READ_ONLY: ErrorSide.SOURCE,
    ErrorCode.SOURCE_STANDBY_BEHIND: ErrorSide.SOURCE,
    ErrorCode.SOURCE_STANDBY_MISSING: ErrorSide.SOURCE,
    ErrorCode.SPILL_LIMIT_REACHED: ErrorSide.ENGINE,
    ErrorCode.STATE_DIRECTORY_FAILED: ErrorSide.ENGINE,
    ErrorCode.STREAM_IN_USE: ErrorSide.DESTINATION,
    ErrorCode.TABLE_TROUBLE: ErrorSide.SOURCE,
    ErrorCode.TABLE_UNPUBLISHED: ErrorSide.SOURCE,
    ErrorCode.TRANSFORMATION_REFUSED: ErrorSide.ENGINE,
    ErrorCode.UNAUTHORIZED: ErrorSide.ENGINE,
    ErrorCode.UNKNOWN_DESTINATION: ErrorSide.ENGINE,
    ErrorCode.UNKNOWN_ERROR_TRANSACTION: ErrorSide.ENGINE,
    ErrorCode.UNKNOWN_SEARCH: ErrorSide.ENGINE,
    ErrorCode.UNKNOWN_STREAM: ErrorSide.ENGINE,
    ErrorCode.UNKNOWN_TABLE: ErrorSide.ENGINE,
    ErrorCode.UNSUPPORTED_TABLE: ErrorSide.SOURCE,
    ErrorCode.WAL_ARCHIVE_FAILED: ErrorSide.ENGINE,
    ErrorCode.WAL_INCOMPLETE: ErrorSide.SOURCE,
    ErrorCode.WAL_LEVEL_TOO_LOW: ErrorSide.SOURCE,
}
"""The sides of errors whose code implies one; the others arise on several sides."""
