"""One GET to the Hub: bounded in time and size, every failure typed, nothing repeated but what aiohttp itself repeats.

(It repeats a GET on a kept connection that the server had closed.)

Why not `huggingface_hub` on this side: it is synchronous, sleeps without a bound inside a call, has no timeout of its
own, and names a bad token, a missing repository and a gated one by one class. The agent uses it where it matters, for
uploads; verification needs four reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urljoin

import aiohttp
from yarl import URL

from gpupod_operator.hub.refusals import refusal
from gpupod_operator.ports import HubUnauthorized, HubUnavailable

# A page holds at most 1000 entries of a few hundred bytes. More than this is not an answer of the Hub.
LARGEST_ANSWER = 64 * 1024 * 1024
CONNECT_SECONDS, READ_SECONDS, TOTAL_SECONDS = 10.0, 30.0, 120.0
CONNECTIONS = 16


@dataclass(frozen=True)
class Answer:
    """A 200 of the Hub: `body`, its headers, those of the redirects on the way, and the next page's URL."""

    body: bytes
    headers: Mapping[str, str]
    redirects: tuple[Mapping[str, str], ...]
    next_url: str | None


def hub_session() -> aiohttp.ClientSession:
    """A session with the timeouts and connection limit the reader wants; the caller closes it."""
    timeout = aiohttp.ClientTimeout(total=TOTAL_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS)
    return aiohttp.ClientSession(
        timeout=timeout,
        connector=aiohttp.TCPConnector(limit=CONNECTIONS),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=True,
    )


class HubRequests:
    """GETs below one endpoint, with a token per call."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: str) -> None:
        self._session = session
        self.endpoint = endpoint.rstrip("/")

    async def json(self, path: str, token: str | None) -> tuple[Any, str | None]:
        """The parsed answer of `path` (or of a next page's URL) and the URL of the page after it.

        Raises:
            HubError: typed; HubUnavailable also for a body that is not JSON.
            EntryMissing: 404, the path does not exist in the revision.
        """
        answer = await self.get(path, token)
        try:
            return json.loads(answer.body), answer.next_url
        except ValueError:
            raise HubUnavailable(f"{_place(path)}: the answer is not JSON") from None

    async def get(self, path: str, token: str | None) -> Answer:
        """The answer of `path`, which starts with a slash, or of an absolute URL below the endpoint.

        Raises:
            HubError: typed, as `json`.
            EntryMissing: 404, the path does not exist in the revision.
        """
        where = _place(path.removeprefix(self.endpoint))
        headers = {"Cache-Control": "no-cache", **_authorization(token)}
        try:
            async with self._session.get(URL(self._absolute(path), encoded=True), headers=headers) as response:
                body = await _read(response, where)
                if response.status != 200:
                    raise refusal(response.status, response.headers, body.decode("utf-8", "replace"), where, token)
                following = response.links["next"].get("url") if "next" in response.links else None
                redirects: tuple[Mapping[str, str], ...] = tuple(hop.headers for hop in response.history)
                return Answer(body, response.headers, redirects, str(following) if following else None)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            # The cause is cut off: aiohttp's errors carry the request with its Authorization header.
            raise HubUnavailable(f"{where}: {_reason(error)}") from None

    def _absolute(self, path: str) -> str:
        url = urljoin(f"{self.endpoint}/", path) if path.startswith("http") else self.endpoint + path
        if not url.startswith(f"{self.endpoint}/"):
            # The token belongs to the endpoint; a page elsewhere would get it.
            raise HubUnavailable(f"the Hub names a next page outside {self.endpoint}")
        return url


def segment(text: str) -> str:
    """A piece of a path as the Hub's API wants it: one segment, slashes encoded."""
    return quote(text, safe="")


def _authorization(token: str | None) -> dict[str, str]:
    if token is None:
        return {}
    if not token.isascii() or not token.isprintable() or " " in token or not token:
        raise HubUnauthorized("the token is empty or holds characters that no token has (a line break, a space)")
    return {"Authorization": f"Bearer {token}"}


async def _read(response: aiohttp.ClientResponse, where: str) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise HubUnavailable(f"{where}: the answer is larger than {LARGEST_ANSWER} bytes")
    return bytes(body)


def _place(path: str) -> str:
    return f"GET {path.partition('?')[0]}"


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port} ({error.os_error.strerror or 'connection failed'})"
    return f"connection failed ({type(error).__name__})"
