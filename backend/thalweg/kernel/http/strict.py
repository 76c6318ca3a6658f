"""Query parameters that an operation does not know are refused: a typing error must not be a filter that is ignored."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute


class StrictRoute(APIRoute):
    """Raises invalid_request that names each unknown parameter, before anything is done."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        known = _query_parameters(self.dependant)
        message = f"It is not known here: {', '.join(sorted(known))} are." if known else "No parameter is known here."

        async def checked(request: Request) -> Response:
            unknown = [name for name in request.query_params if name not in known]
            if unknown:
                raise RequestValidationError(
                    [{"type": "unknown_parameter", "loc": ("query", name), "msg": message} for name in unknown]
                )
            return await handler(request)

        return checked


def _query_parameters(dependant: Dependant) -> set[str]:
    """Its own and those of what it depends on."""
    own = {field.alias for field in dependant.query_params}
    return own.union(*(_query_parameters(other) for other in dependant.dependencies))
