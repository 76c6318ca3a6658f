"""Common to all tables: text ids, times with zone, constraint names that migrations can rely on."""

from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import DateTime, Dialect, MetaData, Text, TypeDecorator, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.kernel.ids import new_id
from thalweg.kernel.lifecycle import (
    DesiredStatus,
    EngineState,
    ObservedStatus,
    OperationState,
    OutageState,
    Stage,
    StreamPhase,
)

State = TypeVar("State", bound=StrEnum)
STATES = (CaptureKind, DesiredStatus, ObservedStatus, StreamPhase, Stage, EngineState, OperationState, OutageState)
NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}


class StateText(TypeDecorator[State]):
    """The state as its value, in a column of text. A value that no version of the store has written is an error."""

    impl = Text
    cache_ok = True

    def __init__(self, states: type[State]) -> None:
        super().__init__()
        self.states = states

    def process_bind_param(self, value: State | str | None, dialect: Dialect) -> str | None:
        return None if value is None else self.states(value).value

    def process_result_value(self, value: str | None, dialect: Dialect) -> State | None:
        return None if value is None else self.states(value)


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map: dict[Any, Any] = {  # noqa: RUF012
        str: Text,
        datetime: DateTime(timezone=True),
        dict[str, Any]: JSONB(none_as_null=True),
        list[dict[str, Any]]: JSONB(none_as_null=True),
        **{states: StateText(states) for states in STATES},
    }


class Identified:
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Versioned(Identified):
    """`version` grows with every update by a user: it is the entity tag."""

    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    version: Mapped[int] = mapped_column(default=1, server_default="1")
