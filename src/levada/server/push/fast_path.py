"""The way of what is pushed, before the router: of a posted line's time in the server, the turns
through the framework's layers and its table of routes were a third.

It has what they do for one: the endpoint's role, and an answer to what is refused and to faults.
What it does not know goes to the router, which has the way in its table, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from levada.server.problem_json import refusal_response
from levada.server.route import Endpoint

OnFault = Callable[[Request, Exception], Awaitable[Response]]


class FastPathMiddleware:
    """An ASGI application around one with a router. ``path`` ends in its one parameter, which is
    the rest of the path: ``/streams/{stream:path}``.
    """

    def __init__(self, app: Starlette, path: str, post: Endpoint, on_fault: OnFault) -> None:
        self._app, self._post, self._on_fault = app, post, on_fault
        self._prefix, _, rest = path.partition("{")
        self._name = rest.removesuffix(":path}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a POST below the path."""
        short = scope["type"] == "http" and scope["method"] == "POST"
        if not short or not scope["path"].startswith(self._prefix):
            await self._app(scope, receive, send)
            return
        scope["app"] = self._app
        scope["path_params"] = {self._name: scope["path"][len(self._prefix) :]}
        request = Request(scope, receive)
        try:
            response = await self._post(request)
        except Exception as error:
            if (answer := refusal_response(request, error)) is None:
                await (await self._on_fault(request, error))(scope, receive, send)
                raise  # the log has it
            response = answer
        await response(scope, receive, send)
