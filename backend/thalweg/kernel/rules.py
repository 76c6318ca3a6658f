"""A stream's rules: table patterns, which include tables or exclude them, and what is done with a table's rows."""

from typing import Annotated

from pydantic import Field, StringConstraints

from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Body, TableIdentifier
from thalweg.kernel.renames import DestinationNames, Renames
from thalweg.kernel.row_rules import RowRules
from thalweg.kernel.transformations import Transformations

PATTERN_LENGTH_MAX = 128
RULES_MAX = 1000

Pattern = Annotated[str, StringConstraints(min_length=1, max_length=PATTERN_LENGTH_MAX, pattern=NO_CONTROL_CHARACTERS)]


class TablePattern(Body):
    """Matches tables by the names of schema and table: `*` stands for any characters, `?` for one; case matters."""

    schema_name: Pattern = Field(alias="schema", examples=["public"])
    table: Pattern = Field(default="*", examples=["orders_*"])


class TableRef(Body):
    schema_name: TableIdentifier = Field(alias="schema", examples=["public"])
    table: TableIdentifier = Field(examples=["orders"])


class TableRules(Body):
    """A stream's table rules: the tables that it replicates, and what becomes of their rows, columns and names. A table
    is replicated when an include pattern matches it and no exclude pattern does."""

    include: Annotated[list[TablePattern], Field(min_length=1, max_length=RULES_MAX)]
    exclude: Annotated[list[TablePattern], Field(max_length=RULES_MAX)] = Field(default_factory=list)
    inserts_only: Annotated[list[TableRef], Field(max_length=RULES_MAX)] = Field(
        default_factory=list,
        description="Tables, by their exact names, of which only inserts and truncates are replicated; their updates "
        "and deletes stay at the source. This makes it possible to replicate a table whose rows nothing "
        "identifies.",
    )
    row_rules: RowRules = Field(
        default_factory=list,
        description="Which rows of tables are copied, and which changes captured. "
        "Changed rules apply to changes from then on; rows at the destination stay as they are until their table is "
        "copied again.",
    )
    transformations: Transformations = Field(
        default_factory=list,
        description="Changes of columns, of tables by their exact names, made before changes leave the engine "
        "that captures, and while rows are copied. Rules see the source's columns.",
    )

    renames: Renames = Field(
        default_factory=list,
        description="Names that tables have at the destinations, where those are others than at the source. Rules, "
        "transformations, policies and the stream's tables go by the source's names. Where a name is changed later, "
        "the destinations' tables are renamed.",
    )

    @property
    def names(self) -> DestinationNames:
        return DestinationNames(self.renames)

    @property
    def given_up(self) -> frozenset[tuple[str, str]]:
        """The names of the tables of which only inserts are replicated."""
        return frozenset((table.schema_name, table.table) for table in self.inserts_only)
