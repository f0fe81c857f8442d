"""One exchange with the API: bounded in time and size, every end typed, repeated only on a 429.

A connection that cannot be made and a 429 are the two ends after which nothing can have happened. The second is
repeated here, after the wait that the vendor asks for; everything else is for the caller to look into.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import aiohttp
from yarl import URL

from gpupod_operator import __version__
from gpupod_operator.core.provider import Failure
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.calls import Call, CallKind
from gpupod_operator.runpod.errors import classify_answer, classify_fault, malformed
from gpupod_operator.runpod.governor import Governor
from gpupod_operator.runpod.keys import KeySource

RUNPOD = "https://api.runpod.io"
# Cloudflare bans the default agents of HTTP libraries; an own name also tells the vendor whom to write to.
USER_AGENT = f"gpupod-operator/{__version__}"
# A page holds at most 1000 pods, of 2 to 3 kB each. Where every pod had the largest body that the vendor takes
# (100 kB), the answer is refused rather than held in memory.
LARGEST_ANSWER = 64 * 1024 * 1024
LARGEST_REFUSAL = 256 * 1024
TIMEOUT = aiohttp.ClientTimeout(total=60.0, connect=5.0, sock_read=30.0)
MOST_TRIES = 3

CallObserver = Callable[[str, str, float], None]
"""Called after each request with its name, its outcome (`ok` or a Failure) and its seconds on the wire."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The expected answer. `document` is its parsed JSON with exact decimals, None for a 204."""

    status: int
    headers: Mapping[str, str]
    document: Any


def runpod_session(base_url: str = RUNPOD) -> aiohttp.ClientSession:
    """A session as the client wants it; the caller closes it. The governor limits connections, so it does not.

    A proxy is taken from the environment once. `trust_env` would read ~/.netrc at each request, too.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=TIMEOUT,
        proxy=_proxy(URL(base_url)),
    )


class RunPodRequests:
    """Requests below one base URL with one key source, admitted by the account's governor."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        key: KeySource,
        governor: Governor,
        *,
        base_url: str = RUNPOD,
        on_call: CallObserver | None = None,
        timeout: aiohttp.ClientTimeout = TIMEOUT,
        permit: Callable[[], bool] = lambda: True,
    ) -> None:
        self._permit = permit
        self._session = session
        self._governor = governor
        self._base = base_url.rstrip("/").removesuffix("/v2") + "/v2"
        self._on_call = on_call
        self._timeout = timeout
        self.key = key

    async def send(
        self,
        call: Call,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        secrets: Iterable[str] = (),
    ) -> Reply:
        """The answer with the status that the call expects.

        `path` starts with a slash and is quoted by the caller. `secrets` are values in the body that no error may show.

        Raises:
            ProviderError: whatever else happened, classified for the call's kind.
        """
        tries = 1
        while True:
            try:
                async with self.exchange(call, path, query=query, body=body, secrets=secrets) as response:
                    return await _reply(call, response)
            except ProviderError as error:
                # Without a status it is the governor that refuses to wait any longer.
                if error.failure is not Failure.THROTTLED or error.status is None or tries >= MOST_TRIES:
                    raise
                tries += 1

    @contextlib.asynccontextmanager
    async def exchange(
        self,
        call: Call,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        accept: str = "application/json",
        secrets: Iterable[str] = (),
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request and its open answer; faults while the caller reads it are classified as well.

        Raises:
            ProviderError: as `send`, THROTTLED included.
        """
        key = self.key.current()
        url = URL(self._base + path, encoded=True)
        headers = {"Authorization": f"Bearer {key.value}", "User-Agent": USER_AGENT, "Accept": accept}
        await self._governor.admit(call.kind)
        if call.kind is not CallKind.READ and not self._permit():
            # asked after the wait and at each try: the Lease may have run out meanwhile
            self._governor.answered(None, {})
            raise ProviderError(Failure.UNAVAILABLE, "this process does not lead any more: nothing was sent")
        status: int | None = None
        told: Mapping[str, str] = {}
        outcome = "Cancelled"
        began = asyncio.get_running_loop().time()
        try:
            async with self._session.request(
                call.method,
                url.update_query(query) if query else url,
                headers=headers,
                json=body,
                allow_redirects=False,
                timeout=self._timeout,
            ) as response:
                status, told = response.status, response.headers
                if status != call.expects:
                    refusal = await _read(response, LARGEST_REFUSAL)
                    raise classify_answer(call.kind, status, told, refusal, secrets=(key.value, *secrets))
                yield response
            outcome = "ok"
        except ProviderError as error:
            outcome = error.failure.value
            raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            fault = classify_fault(call.kind, error)
            outcome = fault.failure.value
            # The cause is cut off: aiohttp's errors carry the request with its Authorization header.
            raise fault from None
        finally:
            self._governor.answered(status, told)
            if self._on_call is not None:
                self._on_call(call.name, outcome, asyncio.get_running_loop().time() - began)


async def _reply(call: Call, response: aiohttp.ClientResponse) -> Reply:
    if response.status == 204:
        return Reply(response.status, response.headers, None)
    content = await _read(response, LARGEST_ANSWER + 1)
    if len(content) > LARGEST_ANSWER:
        raise malformed(call.kind, response.status, response.headers, f"the answer is over {LARGEST_ANSWER} bytes")
    try:
        document = json.loads(content, parse_float=Decimal, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("cloudflare_error"):
        raise classify_answer(call.kind, response.status, response.headers, content)
    return Reply(response.status, response.headers, document)


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body, cut off after `most` bytes."""
    content = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        content += chunk
        if len(content) >= most:
            break
    return bytes(content[:most])


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _proxy(url: URL) -> str | None:
    if url.host is None or urllib.request.proxy_bypass(url.host):
        return None
    return urllib.request.getproxies().get(url.scheme)
