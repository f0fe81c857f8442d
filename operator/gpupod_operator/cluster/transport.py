"""One HTTP connection to the API server: login, typed errors, timeouts, the leader's permit.

aiohttp over kopf's ConnectionInfo, because kopf has both loaded already: 0.8 ms per server-side apply against 2.7 ms
and 71 MB for `kubernetes.aio`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp
import kopf

from gpupod_operator.cluster.errors import NotLeader, error_of
from gpupod_operator.cluster.login import credentials_version, login
from gpupod_operator.ports import ApiUnavailable

JSON = "application/json"
APPLY_PATCH = "application/apply-patch+yaml"
"""Its body may be JSON, because JSON is YAML."""
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

REQUEST_TIMEOUT = 30.0
CONNECT_TIMEOUT = 5.0
CONNECTIONS = 20
BODY_LIMIT = 64 * 1024 * 1024
"""Bytes. A page of 500 objects is about 5 MB; more than this is not an answer of an API server."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Connection:
    """A login and the session made for it. `headers` holds the credential."""

    info: kopf.ConnectionInfo = dataclasses.field(repr=False)
    session: aiohttp.ClientSession
    headers: Mapping[str, str] = dataclasses.field(repr=False)
    version: object


class ApiTransport:
    """Speaks JSON to the API server and raises only the `Api*` errors of `ports`."""

    def __init__(
        self, log_in: Callable[[], kopf.ConnectionInfo] = login, *, user_agent: str = "gpupod-operator"
    ) -> None:
        self._log_in = log_in
        self._user_agent = user_agent
        self._current: _Connection | None = None
        self._retired: aiohttp.ClientSession | None = None
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections; a later request opens new ones."""
        current, self._current = self._current, None
        retired, self._retired = self._retired, None
        if current is not None:
            await current.session.close()
        if retired is not None:
            await retired.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        within: float = REQUEST_TIMEOUT,
        permit: Callable[[], bool] | None = None,
        secret: bool = False,
    ) -> dict[str, Any]:
        """Send once (twice after a 401, with a new login) and return the decoded object.

        `path` is absolute and already quoted; `within` in seconds, connecting included. `permit` is asked right before
        each sending: False raises NotLeader and nothing is sent. `secret` keeps the server's text out of errors.
        """
        what = f"{method} {path}"
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        headers = {} if data is None else {"Content-Type": content_type}
        connection = await self._connect(refused=None)
        _check(permit, what)
        status, answer = await _send(connection, method, path, query, data, headers, within)
        if status == 401:
            connection = await self._connect(refused=connection)
            _check(permit, what)
            status, answer = await _send(connection, method, path, query, data, headers, within)
        if 200 <= status < 300:
            return _decoded(answer, what)
        raise error_of(status, answer, what, secret=secret)

    async def _connect(self, *, refused: _Connection | None) -> _Connection:
        async with self._opening:
            current, version = self._current, credentials_version()
            # many requests may be refused at once: the first of them logs in, the others find its result
            if current is not None and current is not refused and version == current.version:
                return current
            try:
                # in a thread: an exec plugin of a kubeconfig takes seconds
                info = await asyncio.to_thread(self._log_in)
                self._current = await self._open(info, version)
            except (kopf.LoginError, OSError, ValueError) as error:
                raise ApiUnavailable(f"cannot log in to the Kubernetes API: {error}") from None
            return self._current

    async def _open(self, info: kopf.ConnectionInfo, version: object) -> _Connection:
        headers = {"User-Agent": self._user_agent, "Accept": JSON, **info.as_http_headers()}
        current = self._current
        if current is not None and dataclasses.replace(current.info, token=info.token) == info:
            # only the token was rotated: requests in flight must not lose their connection for that
            return _Connection(info, current.session, headers, version)
        context = await asyncio.to_thread(info.as_ssl_context)
        connector = aiohttp.TCPConnector(ssl=context, limit=CONNECTIONS)
        session = aiohttp.ClientSession(connector=connector, trust_env=info.trust_env, proxy=info.proxy_url)
        if self._retired is not None:
            await self._retired.close()
        # what is in flight on the old session may end; it is closed at the next change
        self._retired = current.session if current is not None else None
        return _Connection(info, session, headers, version)


def _check(permit: Callable[[], bool] | None, what: str) -> None:
    if permit is not None and not permit():
        raise NotLeader(f"{what}: not sent, this process does not hold the lease")


async def _send(
    connection: _Connection,
    method: str,
    path: str,
    query: Mapping[str, str] | None,
    data: bytes | None,
    headers: Mapping[str, str],
    within: float,
) -> tuple[int, bytes]:
    what = f"{method} {path}"
    try:
        async with connection.session.request(
            method,
            connection.info.server.rstrip("/") + path,
            params=query,
            data=data,
            headers={**connection.headers, **headers},
            timeout=aiohttp.ClientTimeout(total=within, connect=min(CONNECT_TIMEOUT, within)),
            allow_redirects=False,
        ) as response:
            answer = bytearray()
            async for chunk in response.content.iter_any():
                answer += chunk
                if len(answer) > BODY_LIMIT:
                    raise ApiUnavailable(f"{what}: an answer of more than {BODY_LIMIT} bytes")
            return response.status, bytes(answer)
    except TimeoutError:
        raise ApiUnavailable(f"{what}: no answer within {within:g} s") from None
    except (aiohttp.ClientError, OSError) as error:
        raise ApiUnavailable(f"{what}: {type(error).__name__}: {error}"[:300]) from None


def _decoded(answer: bytes, what: str) -> dict[str, Any]:
    try:
        decoded = json.loads(answer)
    except ValueError:
        decoded = None
    if not isinstance(decoded, dict):
        raise ApiUnavailable(f"{what}: an answer that is not a JSON object")
    return decoded
