"""Says of which columns updates and deletes bring the old values."""

from thalweg.inspection.catalogue import Table
from thalweg.inspection.schemas import ReplicaIdentity
from thalweg.kernel.transformations import TableTransformations


def brings_all(table: Table) -> bool:
    """The old values of whole rows."""
    return all(part.identity is ReplicaIdentity.FULL for part in [table, *table.leaves])


def known_columns(table: Table, transformations: TableTransformations | None) -> set[str | None]:
    """Those of its identity, as they are sent, whose old values come without FULL. Of a partition they may be others
    than those of the whole table: none is known."""
    if table.leaves:
        return set()
    key = table.facts["identity_index"] if table.identity is ReplicaIdentity.INDEX else table.facts["primary_key"]
    return {transformations.sent_name(name) if transformations else name for name in key}
