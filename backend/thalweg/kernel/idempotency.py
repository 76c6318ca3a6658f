"""Idempotency keys: a POST that is sent twice with the same key creates once and answers twice."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Protocol, TypeVar, cast

from fastapi import Depends, Header, Request
from fastapi.responses import Response
from pydantic import BaseModel

from thalweg.kernel.context import Context, Resources


@dataclass(frozen=True)
class Created:
    """The result of a creating service: the body, the status and the headers of the answer."""

    body: BaseModel
    status: int = 201
    headers: dict[str, str] = field(default_factory=dict)

    def response(self) -> Response:
        return Response(self.body.model_dump_json(by_alias=True), self.status, self.headers, "application/json")


Prepared = TypeVar("Prepared")


class IdempotencyStore(Protocol):
    """Implemented by `thalweg.db.idempotency`, wired by `thalweg.api`."""

    async def answered(self, context: Context, key: str, request_hash: str) -> Response | None: ...

    async def run(
        self, context: Context, key: str, request_hash: str, work: Callable[[], Awaitable[Created]]
    ) -> Response: ...


@dataclass(frozen=True)
class Idempotency:
    store: IdempotencyStore
    key: str | None
    request_hash: str

    async def run(self, context: Context, work: Callable[[], Awaitable[Created]]) -> Response:
        if self.key is None:
            return (await work()).response()
        return await self.store.run(context, self.key, self.request_hash, work)

    async def run_prepared(
        self,
        context: Context,
        prepare: Callable[[], Awaitable[Prepared]],
        work: Callable[[Prepared], Awaitable[Created]],
    ) -> Response:
        """`prepare` waits for what is outside: before the work's transaction, and not when the answer is known."""
        if self.key is not None:
            known = await self.store.answered(context, self.key, self.request_hash)
            if known is not None:
                return known
        prepared = await prepare()
        return await self.run(context, lambda: work(prepared))


async def get_idempotency(
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key", min_length=8, max_length=100, pattern=r"^[A-Za-z0-9_.:-]+$",
            description="For one day, a request with the same key and body gets the first answer again.",
        ),
    ] = None,
) -> Idempotency:  # fmt: skip
    content = f"{request.method} {request.url.path}\n".encode() + await request.body()
    # Bodies have passwords, which a hash without a key would give to whoever guesses.
    digest = cast(Resources, request.app.state.resources).secrets.keyed_hash("idempotency", content)
    return Idempotency(request.app.state.idempotency_store, idempotency_key, digest)


OnceOnly = Annotated[Idempotency, Depends(get_idempotency)]
