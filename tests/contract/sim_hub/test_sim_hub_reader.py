"""The operator's reader against the simulated Hub: fresh, complete, typed, and silent about tokens."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace

import pytest
from aiohttp import web

from gpupod_operator.core.artifacts import HubDestination
from gpupod_operator.hub import HubReader, hub_session
from gpupod_operator.ports import (
    HubError,
    HubForbidden,
    HubRateLimited,
    HubRepoNotFound,
    HubUnauthorized,
    HubUnavailable,
)
from gpupod_rehearsal.hub import HubSimulator, HubToken

ADA, ADA_READS, BOB = "hf_ada_secret_token", "hf_ada_reading_token", "hf_bob_secret_token"
PREFIX = "cells/c1"


def put_cell(hub, files: dict[str, bytes], prefix: str = PREFIX, manifest: bytes = b'{"format":1}') -> str:
    placed = {f"{prefix}/{path}": data for path, data in files.items()}
    return hub.repo("ada/sweeps").put({**placed, f"{prefix}/_cell/manifest.json": manifest}, title="cell c1").oid


async def test_a_listing_holds_what_is_below_the_prefix_and_nothing_else(hub, reader, cell, clock):
    weights, text = b"w" * 5000, b'{"acc":1}'
    hub.repo("ada/sweeps").put({"cells/c10/other.json": b"1", "cells/c1.json": b"2", "top.json": b"3"})
    head = put_cell(hub, {"adapter/m.safetensors": weights, "eval/a b#?.json": text})
    listing = await reader.list_prefix(cell, ADA)
    assert (listing.head, listing.at, listing.manifest) == (head, clock.now(), b'{"format":1}')
    assert set(listing.files) == {"adapter/m.safetensors", "eval/a b#?.json", "_cell/manifest.json"}
    large, small = listing.files["adapter/m.safetensors"], listing.files["eval/a b#?.json"]
    assert (large.size, large.sha256) == (5000, hashlib.sha256(weights).hexdigest())
    assert (small.size, small.sha256) == (9, None)
    assert small.blob_id == hashlib.sha1(b"blob 9\0" + text).hexdigest()


async def test_a_listing_agrees_with_the_unmodified_client(hub, client, reader, cell):
    put_cell(hub, {f"store/t{n}.npy": bytes([n]) * n for n in range(1, 40)} | {"e.json": b"{}"})
    theirs = await client(
        """
out({f.path: [f.size, f.blob_id, f.lfs and f.lfs.sha256] for f in
     api.list_repo_tree("ada/sweeps", "cells/c1", recursive=True, repo_type="dataset") if hasattr(f, "size")})
"""
    )
    ours = (await reader.list_prefix(cell, ADA)).files
    assert {f"{PREFIX}/{p}": [f.size, f.blob_id, f.sha256] for p, f in ours.items()} == theirs


async def test_all_pages_are_followed(hub, reader, cell):
    hub.limits = replace(hub.limits, tree_page=7)
    put_cell(hub, {f"a/b/{n}.json": b"x" for n in range(50)})
    listing = await reader.list_prefix(cell, ADA)
    assert len(listing.files) == 51
    assert len([request for request in hub.requests if request.operation == "tree"]) == 8


async def test_a_page_that_fails_makes_the_whole_listing_unknown(hub, reader, cell):
    hub.limits = replace(hub.limits, tree_page=7)
    put_cell(hub, {f"{n}.json": b"x" for n in range(50)})
    for fault in ("status_before", "drop_before", "truncated_body", "html_page"):
        hub.arm(fault, "tree", skip=3, times=None, status=502)
        with pytest.raises(HubUnavailable):
            await reader.list_prefix(cell, ADA)
        hub.clear_faults()


async def test_a_prefix_that_does_not_exist_is_empty(hub, reader, cell):
    listing = await reader.list_prefix(cell, ADA)
    assert (dict(listing.files), listing.manifest) == ({}, None)
    assert listing.head == hub.repo("ada/sweeps").head()


@pytest.mark.parametrize(
    ("kind", "repo", "revision", "path"),
    [
        ("model", "ada/net", "main", "cells/c1"),
        ("dataset", "ada/sweeps", "runs/one", "cells/c1"),
        ("dataset", "ada/sweeps", "main", ""),
        ("dataset", "ada/sweeps", "main", "cells with space/ä?#%2F"),
    ],
)
async def test_models_branches_the_root_and_odd_paths(hub, reader, kind, repo, revision, path):
    view = hub.create_repo(repo, kind=kind)
    if revision != "main":
        hub.state.registry.find(kind, repo).history.create_branch(revision, view.head())
    prefix = f"{path}/" if path else ""
    view.put({f"{prefix}x.json": b"1", f"{prefix}_cell/manifest.json": b"m"}, branch=revision)
    listing = await reader.list_prefix(HubDestination(repo, kind, revision, path), ADA)
    assert set(listing.files) - {".gitattributes"} == {"x.json", "_cell/manifest.json"}
    assert (listing.manifest, listing.head) == (b"m", view.head(revision))


async def test_a_head_that_moves_during_the_listing_is_listed_again(hub, reader, cell, clock):
    put_cell(hub, {"a.json": b"1"})
    hub.arm("delay_after", "tree", seconds=5)
    listing = asyncio.create_task(reader.list_prefix(cell, ADA))
    async with asyncio.timeout(10):
        while not any(request.operation == "revision" for request in hub.requests):
            await asyncio.sleep(0)
    newer = put_cell(hub, {"b.json": b"2"})
    started = clock.now()
    for _ in range(2000):
        if listing.done():
            break
        clock.step(5)
        await asyncio.sleep(0.001)
    found = await listing
    assert found.head == newer
    assert set(found.files) == {"a.json", "b.json", "_cell/manifest.json"}
    assert found.at >= started


async def test_a_head_that_never_rests_is_unknown(hub, reader, cell):
    put_cell(hub, {"a.json": b"1"})
    for number in range(4):
        # Strikes the first head read of each try and spares the second.
        hub.arm("lagging_revision", "revision", skip=number)
    with pytest.raises(HubUnavailable, match="head moved"):
        await reader.list_prefix(cell, ADA)


async def test_a_branch_read_that_lags_once_is_not_taken_for_the_present(hub, reader, cell):
    head = put_cell(hub, {"a.json": b"1"})
    hub.arm("lagging_revision", "revision")
    listing = await reader.list_prefix(cell, ADA)
    assert listing.head == head
    assert "a.json" in listing.files


async def test_a_manifest_whose_stored_bytes_changed_is_given_as_it_is_read(hub, reader, cell):
    put_cell(hub, {"a.json": b"1"}, manifest=b"the manifest")
    hub.repo("ada/sweeps").corrupt(f"{PREFIX}/_cell/manifest.json", b"another text")
    assert (await reader.list_prefix(cell, ADA)).manifest == b"another text"


@pytest.mark.parametrize("fault", ["html_page", "truncated_body", "drop_before", "status_before"])
async def test_a_manifest_that_cannot_be_read_makes_the_listing_unknown(hub, reader, cell, fault):
    put_cell(hub, {"a.json": b"1"})
    hub.arm(fault, "resolve", times=None, status=404)
    with pytest.raises(HubUnavailable):
        await reader.list_prefix(cell, ADA)


@pytest.mark.parametrize(
    ("repo", "revision", "token", "error"),
    [
        ("ada/sweeps", "main", "hf_unknown", HubUnauthorized),
        ("ada/sweeps", "main", "hf_with a_space", HubUnauthorized),
        ("ada/sweeps", "main", "hf_line\n", HubUnauthorized),
        ("ada/none", "main", ADA, HubRepoNotFound),
        ("ada/secret", "main", BOB, HubRepoNotFound),
        ("ada/secret", "main", None, HubUnauthorized),
        ("ada/sweeps", "no-branch", ADA, HubRepoNotFound),
    ],
)
async def test_who_may_not_read_is_told_why(hub, reader, repo, revision, token, error):
    hub.create_repo("ada/secret", private=True)
    destination = HubDestination(repo, "dataset", revision, PREFIX)
    for read in (reader.list_prefix(destination, token), reader.commits(destination, token)):
        with pytest.raises(error) as caught:
            await read
        assert type(caught.value) is error


@pytest.mark.parametrize("operation", ["revision", "tree", "resolve"])
@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        ("status_before", 401, HubUnauthorized),
        ("status_before", 403, HubForbidden),
        ("status_before", 404, HubUnavailable),
        ("status_before", 408, HubUnavailable),
        ("status_before", 500, HubUnavailable),
        ("status_before", 504, HubUnavailable),
        ("status_after", 502, HubUnavailable),
        ("drop_before", 0, HubUnavailable),
        ("drop_after", 0, HubUnavailable),
        ("truncated_body", 0, HubUnavailable),
        ("html_page", 0, HubUnavailable),
        ("api_quota", 0, HubRateLimited),
        ("queue_full", 0, HubRateLimited),
        ("private_storage_full", 0, HubForbidden),
    ],
)
async def test_every_fault_of_every_read_is_typed_and_never_an_empty_listing(
    hub, reader, cell, operation, fault, status, error
):
    put_cell(hub, {"a.json": b"1"})
    hub.arm(fault, operation, times=None, status=status or 500, seconds=70)
    with pytest.raises(HubError) as caught:
        await reader.list_prefix(cell, ADA)
    assert type(caught.value) is error
    if error is HubRateLimited:
        assert (caught.value.kind, caught.value.retry_after) == (
            ("Api", 71.0) if fault == "api_quota" else ("Queue", 10.0)
        )


async def test_a_hub_that_cannot_be_reached_is_unavailable(cell, clock):
    async with hub_session() as session:
        for endpoint in ("http://127.0.0.1:9", "http://no-such-host.invalid"):
            with pytest.raises(HubUnavailable):
                await HubReader(session, clock, endpoint=endpoint).list_prefix(cell, ADA)


async def test_a_hub_that_accepts_and_never_answers_is_given_up(cell, clock, monkeypatch):
    monkeypatch.setattr("gpupod_operator.hub.requests.READ_SECONDS", 0.05)
    gone = asyncio.Event()

    async def silent(reader, writer):
        await gone.wait()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with hub_session() as session:
        with pytest.raises(HubUnavailable, match="in time"):
            await HubReader(session, clock, endpoint=f"http://127.0.0.1:{port}").list_prefix(cell, ADA)
    gone.set()
    server.close()
    await server.wait_closed()


async def test_commits_carry_title_trailers_and_time_newest_first(hub, reader, cell, clock):
    hub.limits = replace(hub.limits, commits_page=4)
    for number in range(10):
        clock.step(60)
        trailers = f"SweepCell-Uid: u{number}\nSweepCell-Manifest: {number:064}"
        hub.repo("ada/sweeps").put({f"{number}.json": b"1"}, title=f"cell c{number}", description=trailers)
    commits = await reader.commits(cell, ADA, limit=6)
    assert [commit.title for commit in commits] == [f"cell c{number}" for number in range(9, 3, -1)]
    assert commits[0].message == f"cell c9\n\nSweepCell-Uid: u9\nSweepCell-Manifest: {9:064}"
    assert (commits[0].oid, commits[0].at) == (hub.repo("ada/sweeps").head(), clock.now())
    assert len(await reader.commits(cell, ADA, limit=500)) == 11


@pytest.mark.parametrize(
    ("repo", "token", "error"),
    [
        ("ada/sweeps", ADA, None),
        ("lab/shared", ADA, None),
        ("lab/shared", BOB, HubForbidden),
        ("ada/sweeps", BOB, HubForbidden),
        ("ada/sweeps", ADA_READS, HubForbidden),
        ("ada/secret", BOB, HubRepoNotFound),
        ("ada/none", ADA, HubRepoNotFound),
        ("ada/sweeps", "hf_unknown", HubUnauthorized),
        ("ada/sweeps", None, HubUnauthorized),
    ],
)
async def test_the_write_check_tells_who_may_write_and_creates_nothing(hub, reader, repo, token, error):
    hub.create_repo("ada/secret", private=True)
    hub.create_repo("lab/shared", private=True)
    before = {repository.key: dict(repository.history.branches) for repository in hub.state.registry}
    destination = HubDestination(repo, "dataset", "main", PREFIX)
    if error is None:
        await reader.check_write(destination, token)
    else:
        with pytest.raises(error) as caught:
            await reader.check_write(destination, token)
        assert type(caught.value) is error
    assert {repository.key: dict(repository.history.branches) for repository in hub.state.registry} == before
    assert {request.method for request in hub.requests} <= {"GET"}


async def test_a_kept_connection_that_the_hub_has_closed_is_no_fault(hub, reader, cell):
    put_cell(hub, {"a.json": b"1"})
    await reader.list_prefix(cell, ADA)
    hub.arm("drop_before", "revision")
    assert "a.json" in (await reader.list_prefix(cell, ADA)).files


async def test_a_revoked_token_is_noticed_at_the_next_read(hub, reader, cell):
    await reader.list_prefix(cell, ADA)
    hub.revoke_tokens("ada")
    with pytest.raises(HubUnauthorized):
        await reader.list_prefix(cell, ADA)


async def test_no_error_holds_the_token_even_when_the_server_repeats_it(hub, reader, cell, caplog):
    caplog.set_level("DEBUG")
    for fault, status in [("status_before", 403), ("status_before", 500), ("drop_before", 0), ("truncated_body", 0)]:
        hub.clear_faults()
        armed = hub.arm(fault, "revision", times=None, status=status or 500)
        armed.message = f"token {ADA} is bad"
        with pytest.raises(HubError) as caught:
            await reader.list_prefix(cell, ADA)
        seen: BaseException | None = caught.value
        while seen is not None:
            assert ADA not in f"{seen} {seen!r} {seen.args}"
            seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    assert ADA not in caplog.text


async def serve(handler):
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


async def test_the_token_is_never_sent_to_another_host(cell, clock):
    stolen: list[str | None] = []

    async def thief(request):
        stolen.append(request.headers.get("Authorization"))
        return web.json_response({"sha": "a" * 40})

    thieving, elsewhere = await serve(thief)

    async def redirecting(request):
        if "/revision/" in request.path:
            raise web.HTTPTemporaryRedirect(f"{elsewhere}/revision")
        return web.json_response([], headers={"Link": f'<{elsewhere}/tree>; rel="next"'})

    honest, endpoint = await serve(redirecting)
    async with hub_session() as session:
        with pytest.raises(HubUnavailable, match="outside"):
            await HubReader(session, clock, endpoint=endpoint).list_prefix(cell, ADA)
    await honest.cleanup()
    await thieving.cleanup()
    assert stolen == [None]


@pytest.mark.parametrize(
    "page",
    [
        {"error": "no list"},
        ["no object"],
        [{"type": "file", "path": "elsewhere/x", "size": 1, "oid": "a"}],
        [{"type": "file", "path": f"{PREFIX}/x", "oid": "a"}],
        [{"type": "file", "path": f"{PREFIX}/x", "size": 1, "oid": "a", "lfs": {"oid": 5}}],
        [{"type": "new kind", "path": f"{PREFIX}/x"}],
    ],
)
async def test_an_answer_of_unknown_shape_is_unknown(cell, clock, page):
    async def handler(request):
        return web.json_response({"sha": "a" * 40} if "/revision/" in request.path else page)

    runner, endpoint = await serve(handler)
    async with hub_session() as session:
        with pytest.raises(HubUnavailable):
            await HubReader(session, clock, endpoint=endpoint).list_prefix(cell, ADA)
    await runner.cleanup()


async def test_pages_that_do_not_end_or_repeat_files_are_unknown(cell, clock):
    page = [{"type": "file", "path": f"{PREFIX}/x", "size": 1, "oid": "a"}]

    async def handler(request):
        if "/revision/" in request.path:
            return web.json_response({"sha": "a" * 40})
        number = int(request.query.get("cursor", "0")) + 1
        entries = page if request.headers["X-Page"] == "same" else []
        url = f"http://{request.host}{request.path}?cursor={number}"
        return web.json_response(entries, headers={"Link": f'<{url}>; rel="next"'})

    runner, endpoint = await serve(handler)
    for kind, message in (("same", "one file"), ("empty", "do not end")):
        async with hub_session() as session:
            session.headers["X-Page"] = kind
            with pytest.raises(HubUnavailable, match=message):
                await HubReader(session, clock, endpoint=endpoint).list_prefix(cell, ADA)
    await runner.cleanup()


async def test_the_real_manifest_of_a_real_upload_is_read_back(hub, client, reader, cell, tmp_path):
    manifest = json.dumps({"format": 1, "files": []}, sort_keys=True)
    (tmp_path / "m.json").write_text(manifest)
    oid = await client(
        """
out(commit([add("cells/c1/_cell/manifest.json", "m.json"), add("cells/c1/x.pt", b"x" * 99)], commit_message="cell c1",
           commit_description="SweepCell-Uid: u1").oid)
""",
        xet=True,
    )
    listing = await reader.list_prefix(cell, ADA)
    assert (listing.head, listing.manifest) == (oid, manifest.encode())
    assert (await reader.commits(cell, ADA, limit=1))[0].message == "cell c1\n\nSweepCell-Uid: u1"


async def test_one_reader_serves_many_cells_at_once(clock):
    tokens = [HubToken("ada", secret=ADA)]
    async with HubSimulator(tokens=tokens, clock=clock) as hub, hub_session() as session:
        repo = hub.create_repo("ada/sweeps")
        repo.put({f"cells/{n}/x.json": str(n).encode() for n in range(100)})
        reader = HubReader(session, clock, endpoint=hub.url)
        cells = [HubDestination("ada/sweeps", "dataset", "main", f"cells/{n}") for n in range(100)]
        listings = await asyncio.gather(*(reader.list_prefix(cell, ADA) for cell in cells))
    assert [set(listing.files) for listing in listings] == [{"x.json"}] * 100
