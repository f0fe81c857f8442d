"""The route table. Paths are matched as they arrive, before decoding: a branch or a path may hold an encoded slash."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from aiohttp import web

from gpupod_rehearsal.hub import routes_account, routes_lfs, routes_read, routes_upload, routes_xet
from gpupod_rehearsal.hub.call import Call
from gpupod_rehearsal.hub.limits import RateClass

Handler = Callable[[Call], Awaitable[web.StreamResponse]]

_REPO = r"/api/(?P<kind>models|datasets|spaces)/(?P<namespace>[^/]+)/(?P<name>[^/]+)"
_PAGE = r"/(?:(?P<kind>datasets|spaces)/)?(?P<namespace>[^/]+)/(?P<name>[^/]+?)"
_REVISION = r"/(?P<revision>[^/]+)"
_GRANT = r"/_lfs/(?P<grant>[^/]+)"


@dataclass(frozen=True)
class Route:
    """`operation` is the name faults and the request log use; `quota` None means that no request quota counts it."""

    methods: str
    pattern: re.Pattern[str]
    operation: str
    handler: Handler
    quota: RateClass | None = "api"
    auth: Literal["token", "own"] = "token"


def _route(
    methods: str,
    pattern: str,
    operation: str,
    handler: Handler,
    quota: RateClass | None = "api",
    auth: Literal["token", "own"] = "token",
) -> Route:
    return Route(methods, re.compile(pattern), operation, handler, quota, auth)


ROUTES: tuple[Route, ...] = (
    _route("GET", "/api/whoami-v2", "whoami", routes_account.whoami),
    _route("GET", "/api/agent-harnesses", "agent_harnesses", routes_account.agent_harnesses),
    _route("POST", "/api/validate-yaml", "validate_yaml", routes_account.validate_yaml),
    _route("POST", "/api/repos/create", "create_repo", routes_account.create_repo),
    _route("DELETE", "/api/repos/delete", "delete_repo", routes_account.delete_repo),
    _route("GET", _REPO, "repo_info", routes_account.repo_info),
    _route("GET", f"{_REPO}/revision{_REVISION}", "revision", routes_account.repo_info),
    _route("GET", f"{_REPO}/auth-check", "auth_check", routes_account.auth_check),
    _route("GET", f"{_REPO}/auth-check/write", "auth_check_write", routes_account.auth_check_write),
    _route("GET", f"{_REPO}/refs", "refs", routes_account.refs),
    _route("POST", f"{_REPO}/branch/(?P<branch>[^/]+)", "create_branch", routes_account.create_branch),
    _route("DELETE", f"{_REPO}/branch/(?P<branch>[^/]+)", "delete_branch", routes_account.delete_branch),
    _route("GET", f"{_REPO}/tree{_REVISION}(?:/(?P<path>.+))?", "tree", routes_read.tree),
    _route("POST", f"{_REPO}/paths-info{_REVISION}", "paths_info", routes_read.paths_info),
    _route("GET", f"{_REPO}/commits{_REVISION}", "commits", routes_read.commits),
    _route("POST", f"{_REPO}/preupload{_REVISION}", "preupload", routes_upload.preupload),
    _route("POST", f"{_REPO}/commit{_REVISION}", "commit", routes_upload.commit),
    _route("GET", f"{_REPO}/xet-write-token{_REVISION}", "xet_token", routes_xet.write_token),
    _route("POST", rf"{_PAGE}\.git/info/lfs/objects/batch", "lfs_batch", routes_lfs.batch),
    _route("GET HEAD", f"{_PAGE}/resolve{_REVISION}/(?P<path>.+)", "resolve", routes_read.resolve, "resolvers"),
    _route("PUT", f"{_GRANT}/object", "lfs_put", routes_lfs.put_object, None, "own"),
    _route("PUT", f"{_GRANT}/part/(?P<part>[0-9]+)", "lfs_put", routes_lfs.put_part, None, "own"),
    _route("POST", f"{_GRANT}/complete", "lfs_complete", routes_lfs.complete, None, "own"),
    _route("POST", f"{_GRANT}/verify", "lfs_verify", routes_lfs.verify, None),
    _route("GET", "/_xet/v1/chunks/[^/]+/[^/]+", "xet_chunks", routes_xet.known_chunks, None, "own"),
    _route("POST", "/_xet/v1/xorbs/[^/]+/(?P<digest>[0-9a-f]{64})", "xet_xorb", routes_xet.put_xorb, None, "own"),
    _route("POST", "/_xet/v1/shards", "xet_shard", routes_xet.put_shard, None, "own"),
    _route("POST", "(?:/_xet)?/v1/telemetry", "xet_telemetry", routes_xet.telemetry, None, "own"),
)

OPERATIONS: frozenset[str] = frozenset(route.operation for route in ROUTES)


def find_route(method: str, raw_path: str) -> tuple[Route, dict[str, str]] | None:
    """The route of a request and the decoded pieces of its path; None when the Hub has no such page."""
    for route in ROUTES:
        if method in route.methods.split() and (match := route.pattern.fullmatch(raw_path)):
            return route, {name: unquote(value) for name, value in match.groupdict().items() if value is not None}
    return None
