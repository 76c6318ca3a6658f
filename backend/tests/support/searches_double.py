"""The part of the engine's double that searches in the log. It finds the changes of the contract's example."""

import copy
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

ALL = "/v1/streams/{id}/searches"


class SearchesDouble:
    """`states` are those that looks at a search find one after another; the last one stays."""

    def __init__(
        self, refuse: Callable[[int, str, str], JSONResponse], example: Callable[[str], dict[str, Any]]
    ) -> None:
        self._refuse, self._example = refuse, example
        self.refusal: tuple[int, str, str] | None = None
        """Status, code and message for whoever asks for something."""
        self.refuses_search: tuple[int, str, str] | None = None
        """For whoever begins one."""
        self.kept_from: dict[str, str] = {}
        """By the stream, where it is not the example's."""
        self.states = ["DONE"]
        self.changes: list[dict[str, Any]] = copy.deepcopy(example("search")["changes"])
        self.page_max = 1000
        self.asked: list[tuple[str, dict[str, Any]]] = []
        """The stream and the body of each search."""
        self.looked: list[dict[str, str]] = []
        """Queries of looks at a search."""
        self.known: dict[str, str] = {}
        """Streams by the ids of their searches."""

    def routes(self) -> list[Route]:
        return [
            Route(ALL, self._list),
            Route(ALL, self._begin, methods=["POST"]),
            Route(f"{ALL}/{{search}}", self._look),
            Route(f"{ALL}/{{search}}", self._end, methods=["DELETE"]),
        ]

    async def _list(self, request: Request) -> Response:
        if self.refusal is not None:
            return self._refuse(*self.refusal)
        kept = self._example("searches")
        stream = request.path_params["id"]
        searches = [self._search(search, state) for search, of in self.known.items() if of == stream
                    for state in self.states[-1:]]  # fmt: skip
        return JSONResponse({**kept, "kept_from": self.kept_from.get(stream, kept["kept_from"]), "searches": searches})

    async def _begin(self, request: Request) -> Response:
        refusal = self.refusal or self.refuses_search
        if refusal is not None:
            return self._refuse(*refusal)
        stream = request.path_params["id"]
        self.asked.append((stream, await request.json()))
        search = f"s7x3c9v{len(self.asked)}"
        self.known[search] = stream
        return JSONResponse(self._search(search, "RUNNING"), 202)

    async def _look(self, request: Request) -> Response:
        if self.refusal is not None:
            return self._refuse(*self.refusal)
        search = request.path_params["search"]
        if self.known.get(search) != request.path_params["id"]:
            return self._refuse(404, "unknown_search", "The stream has no such search.")
        query = dict(request.query_params)
        self.looked.append(query)
        after, limit = int(query.get("after", "0")), min(int(query.get("limit", "100")), self.page_max)
        left = [change for change in self.changes if change["number"] > after]
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return JSONResponse(
            {
                **self._search(search, state), "changes": left[:limit],
                "next_after": left[limit - 1]["number"] if len(left) > limit else None,
            }
        )  # fmt: skip

    async def _end(self, request: Request) -> Response:
        del self.known[request.path_params["search"]]
        return Response(status_code=204)

    def _search(self, search: str, state: str) -> dict[str, Any]:
        running, failed = self._example("searches")["searches"]
        if state == "DONE":
            facts = {
                name: value for name, value in self._example("search").items() if name not in ("changes", "next_after")
            }
        else:
            facts = running if state == "RUNNING" else failed
        return {**facts, "id": search}
