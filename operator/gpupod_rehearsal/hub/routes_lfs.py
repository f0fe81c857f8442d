"""Routes that take an LFS object's bytes: the batch call, the upload urls it hands out, and verify."""

from __future__ import annotations

import asyncio
import hashlib
import re
from math import ceil
from pathlib import Path
from typing import Any

from aiohttp import web

from gpupod_rehearsal.hub import refusals
from gpupod_rehearsal.hub.blobs import READ_CHUNK, DigestMismatchError
from gpupod_rehearsal.hub.call import Call
from gpupod_rehearsal.hub.lfs_grants import LfsGrant

_SHA256 = re.compile(r"[0-9a-f]{64}")


async def batch(call: Call) -> web.Response:
    """Tell for each object where to upload it; an object that is stored gets no action."""
    repository = call.writable()
    body = await call.json()
    if body.get("operation") != "upload" or body.get("hash_algo", "sha256") != "sha256":
        raise refusals.bad_request("Only uploads by sha256 are supported")
    wanted = {str(item["oid"]): int(item["size"]) for item in body.get("objects", [])}
    new = {oid: size for oid, size in wanted.items() if call.state.blobs.lfs_size(oid) is None}
    call.state.refuse_beyond_storage(repository, new)
    answers: list[dict[str, Any]] = []
    for oid, size in wanted.items():
        answer: dict[str, Any] = {"oid": oid, "size": size}
        if not _SHA256.fullmatch(oid):
            answer["error"] = {"code": 422, "message": "Invalid sha256"}
        elif oid in new:
            answer |= {"authenticated": True, "actions": _actions(call, call.state.grants.issue(oid, size))}
        answers.append(answer)
    return web.json_response({"transfer": "basic", "objects": answers}, content_type="application/vnd.git-lfs+json")


async def put_object(call: Call) -> web.Response:
    """Take the whole object; wrong bytes are refused as an object store with a checksum does."""
    grant = _grant(call)
    incoming = await _receive(call)
    return await _store(call, grant, incoming)


async def put_part(call: Call) -> web.Response:
    """Take one part of a multipart upload; the ETag goes into the completion call."""
    grant = _grant(call)
    incoming = await _receive(call)
    grant.parts[int(call.parts["part"])] = incoming
    return web.Response(headers={"ETag": f'"{_etag(incoming)}"'})


async def complete(call: Call) -> web.Response:
    """Join the parts of a multipart upload."""
    grant = _grant(call)
    body = await call.json()
    incoming = call.state.blobs.incoming_file()
    with incoming.open("wb") as stream:
        for number, part in enumerate(body.get("parts", []), start=1):
            path = grant.parts.get(number)
            if path is None or part.get("etag", "").strip('"') != _etag(path):
                raise refusals.bad_request(f"Part {number} is missing or has another etag")
            stream.write(path.read_bytes())
    for path in grant.parts.values():
        path.unlink()
    grant.parts.clear()
    return await _store(call, grant, incoming)


async def verify(call: Call) -> web.Response:
    """Confirm that the object is stored with the announced size."""
    body = await call.json()
    if call.state.blobs.lfs_size(str(body.get("oid"))) != body.get("size"):
        raise refusals.HubRefusedError(404, "Object does not exist on the server")
    return web.json_response({})


def _actions(call: Call, grant: LfsGrant) -> dict[str, Any]:
    base = f"{call.state.url}/_lfs/{grant.grant_id}"
    limits = call.state.limits
    upload: dict[str, Any] = {"href": f"{base}/object"}
    if grant.size > limits.multipart_bytes:
        chunk = limits.multipart_chunk_bytes
        header = {"chunk_size": str(chunk)}
        header |= {str(part): f"{base}/part/{part}" for part in range(1, ceil(grant.size / chunk) + 1)}
        upload = {"href": f"{base}/complete", "header": header}
    return {"upload": upload, "verify": {"href": f"{base}/verify"}}


def _grant(call: Call) -> LfsGrant:
    grant = call.state.grants.find(call.parts["grant"])
    if grant is None:
        raise refusals.HubRefusedError(403, "Request has expired")
    return grant


async def _receive(call: Call) -> Path:
    incoming = call.state.blobs.incoming_file()
    with incoming.open("wb") as stream:
        async for chunk in call.request.content.iter_chunked(READ_CHUNK):
            stream.write(chunk)
    return incoming


async def _store(call: Call, grant: LfsGrant, incoming: Path) -> web.Response:
    try:
        await asyncio.to_thread(call.state.blobs.adopt_lfs, incoming, grant.sha256)
    except DigestMismatchError as error:
        raise refusals.bad_request("XAmzContentChecksumMismatch: the bytes do not match the sha256") from error
    return web.json_response({})


def _etag(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]
