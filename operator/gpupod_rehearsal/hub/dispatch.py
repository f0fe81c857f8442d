"""How every request is answered: route, token, quota, fault, handler, log."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from uuid import uuid4

from aiohttp import web

from gpupod_rehearsal.hub import refusals
from gpupod_rehearsal.hub.call import Call
from gpupod_rehearsal.hub.commits import commit_lock
from gpupod_rehearsal.hub.faults import Fault
from gpupod_rehearsal.hub.limits import rate_headers
from gpupod_rehearsal.hub.routes import Route, find_route
from gpupod_rehearsal.hub.state import HubState, LoggedRequest

log = logging.getLogger(__name__)


class _DroppedError(Exception):
    """The connection is to be closed without an answer."""


class Dispatcher:
    """The Hub's single entry point for everything that a client may ask."""

    def __init__(self, state: HubState) -> None:
        self._state = state

    async def handle(self, request: web.Request) -> web.StreamResponse:
        found = find_route(request.method, request.raw_path.partition("?")[0])
        if found is None:
            return refusals.HubRefusedError(404, "Sorry, we can't find the page you are looking for.").response()
        route, parts = found
        call = Call(self._state, request, route.operation, parts)
        call.fault = self._state.faults.strike(route.operation, call.repo_id)
        status: int | None = None
        try:
            response = await self._answer(call, route)
            status = response.status
        except _DroppedError:
            _close(request)
            response = web.Response()
        finally:
            self._log(call, status)
        return response

    async def _answer(self, call: Call, route: Route) -> web.StreamResponse:
        headers = {"X-Request-Id": f"Root=1-{uuid4().hex}"}
        try:
            if route.auth == "token":
                call.token = self._state.accounts.authenticate(call.request.headers.get("Authorization"))
            if route.quota is not None:
                user = call.token.user if call.token else None
                headers |= self._state.request_quota.spend(
                    user, route.quota, self._state.clock.now(), self._state.limits
                )
            response = await self._handle_under_fault(call, route)
        except refusals.HubRefusedError as refusal:
            response = refusal.response()
        if not response.prepared:
            for name, value in headers.items():
                response.headers.setdefault(name, value)
        return response

    async def _handle_under_fault(self, call: Call, route: Route) -> web.StreamResponse:
        with ExitStack() as stack:
            if call.operation == "commit":
                # The body comes first: the Hub's lock covers the work, not the upload of the request.
                repository = call.writable()
                await call.request.read()
                stack.enter_context(commit_lock(repository))
            fault = call.fault
            if fault is not None:
                early = await self._strike_before(fault)
                if early is not None:
                    return early
            response = await route.handler(call)
            if fault is not None:
                return await self._strike_after(call, fault, response)
            return response

    async def _strike_before(self, fault: Fault) -> web.Response | None:
        match fault.name:
            case "drop_before":
                raise _DroppedError
            case "delay_before":
                await self._state.clock.sleep(fault.seconds)
            case "html_page":
                return web.Response(text="<html><body>Sign in to the network</body></html>", content_type="text/html")
        refusal = self._refusal(fault)
        if refusal is not None:
            raise refusal
        return None

    def _refusal(self, fault: Fault) -> refusals.HubRefusedError | None:
        match fault.name:
            case "status_before":
                return refusals.HubRefusedError(fault.status, fault.message)
            case "api_quota":
                return self._api_quota(fault)
            case "commit_quota":
                return refusals.commit_quota(self._state.limits.commits_per_hour, fault.seconds)
            case "queue_full":
                return refusals.queue_full()
            case "commit_in_progress":
                return refusals.commit_in_progress()
            case "head_moved":
                return refusals.head_moved()
            case "private_storage_full" | "public_storage_full":
                return refusals.storage_quota(private=fault.name.startswith("private"))
        return None

    async def _strike_after(self, call: Call, fault: Fault, response: web.StreamResponse) -> web.StreamResponse:
        match fault.name:
            case "status_after":
                return refusals.HubRefusedError(fault.status, fault.message).response()
            case "drop_after":
                raise _DroppedError
            case "delay_after":
                await self._state.clock.sleep(fault.seconds)
            case "truncated_body":
                return await _send_half(call.request, response)
        return response

    def _api_quota(self, fault: Fault) -> refusals.HubRefusedError:
        limits = self._state.limits
        refusal = refusals.api_quota(limits.api_requests, limits.window_seconds)
        reset = max(1, round(fault.seconds))
        refusal.headers |= rate_headers("api", 0, reset, limits.api_requests, limits.window_seconds)
        return refusal

    def _log(self, call: Call, status: int | None) -> None:
        entry = LoggedRequest(
            at=self._state.clock.now(),
            method=call.request.method,
            path=call.request.raw_path,
            operation=call.operation,
            repo=call.repo_id,
            user=call.token.user if call.token else None,
            status=status,
            fault=call.fault.name if call.fault else None,
        )
        self._state.requests.append(entry)
        log.debug("%s %s %s", entry.method, entry.operation, entry.status)


async def _send_half(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    body = response.body if isinstance(response, web.Response) else None
    data = bytes(body) if isinstance(body, bytes | bytearray) else b""
    partial = web.StreamResponse(status=response.status, headers={"Content-Length": str(len(data))})
    partial.content_type = response.content_type
    await partial.prepare(request)
    await partial.write(data[: len(data) // 2])
    _close(request)
    return partial


def _close(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.close()
