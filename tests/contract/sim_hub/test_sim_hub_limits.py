"""The simulated Hub refuses what the real one refuses, in the same words."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

ADA = {"Authorization": "Bearer hf_ada_secret_token"}
COMMIT = "/api/datasets/ada/sweeps/commit/main"
SMALL = '{"key":"header","value":{"summary":"cell"}}\n{"key":"file","value":{"path":"%s","content":"x"}}\n'


@pytest.fixture
async def http(hub):
    async with aiohttp.ClientSession(base_url=hub.url, headers=ADA) as session:
        yield session


async def post(http, path: str = "x.json", **header: str):
    body = SMALL % path
    if header:
        body = body.replace('"summary":"cell"', f'"summary":"cell","parentCommit":"{header["parent"]}"')
    async with http.post(COMMIT, data=body) as answer:
        return answer.status, await answer.text(), answer.headers


async def test_commit_quota_of_an_hour_says_how_long_to_wait_and_leaves_the_headers_healthy(hub, http, clock):
    hub.limits = replace(hub.limits, commits_per_hour=3)
    for number in range(3):
        assert (await post(http, f"{number}.json"))[0] == 200
        clock.step(60)
    status, text, headers = await post(http, "late.json")
    assert status == 429
    assert "exceeded the rate limit for repository commits (3 per hour)" in text
    assert "retry this action in about 1 hour" in text
    assert ";r=0;" not in headers["RateLimit"]
    clock.step(40 * 60)
    assert "retry this action in 17 minutes" in (await post(http, "late.json"))[1]
    assert "late.json" not in hub.repo("ada/sweeps").files()
    clock.step(17 * 60)
    assert (await post(http, "late.json"))[0] == 200


async def test_a_second_commit_while_one_is_at_work_is_refused_and_the_head_has_not_moved(hub, http, clock):
    head = hub.repo("ada/sweeps").head()
    hub.arm("delay_before", "commit", seconds=30)
    first = asyncio.create_task(post(http, "first.json"))
    async with asyncio.timeout(10):
        while not hub.state.registry.find("dataset", "ada/sweeps").committing:
            await asyncio.sleep(0)
    status, text, _ = await post(http, "second.json")
    assert status == 409
    assert "Another commit operation is in progress for this repository. Please try again later." in text
    assert hub.repo("ada/sweeps").head() == head
    clock.step(30)
    assert (await first)[0] == 200
    assert (await post(http, "second.json"))[0] == 200


async def test_a_parent_that_is_not_the_head_is_412(hub, http):
    old = hub.repo("ada/sweeps").head()
    hub.repo("ada/sweeps").put({"other.json": b"1"})
    status, text, _ = await post(http, parent=old)
    assert (status, "A commit has happened since. Please refresh and try again." in text) == (412, True)


async def test_too_many_files_in_a_directory_are_refused_and_subdirectories_do_not_count(hub, http):
    hub.repo("ada/sweeps").put({f"full/{n}": b"x" for n in range(10_000)})
    status, text, _ = await post(http, "full/one-more")
    assert status == 400
    assert "too many files per directory" in text
    assert "/full/" in text
    assert (await post(http, "full/sub/one-more"))[0] == 200


async def test_a_pointer_to_an_object_that_was_never_uploaded_is_refused(hub, http):
    line = '{"key":"lfsFile","value":{"path":"m.pt","algo":"sha256","oid":"%s","size":3}}' % ("a" * 64)
    async with http.post(COMMIT, data='{"key":"header","value":{"summary":"c"}}\n' + line) as answer:
        assert answer.status == 400
        text = await answer.text()
    assert "LFS pointer pointed to a file that does not exist" in text
    assert "Offending file: - m.pt" in text
    assert "m.pt" not in hub.repo("ada/sweeps").files()


@pytest.mark.parametrize(
    ("path", "status"), [("a/../b", 400), (".git/config", 400), ("a.json/below", 400), ("a", 400), ("ok", 200)]
)
async def test_paths_git_cannot_hold_are_refused(hub, http, path: str, status: int):
    hub.repo("ada/sweeps").put({"a.json": b"1", "a/x": b"2"})
    assert (await post(http, path))[0] == status


@pytest.mark.parametrize("body", ["", "not json", '{"key":"file","value":{}}', '{"key":"what","value":{"path":"x"}}'])
async def test_a_malformed_commit_is_400_and_changes_nothing(hub, http, body: str):
    async with http.post(COMMIT, data=body) as answer:
        assert answer.status == 400
    assert len(hub.repo("ada/sweeps").commits()) == 1


async def test_request_quota_of_a_window(hub, http, clock):
    hub.limits = replace(hub.limits, api_requests=2)
    statuses = []
    for _ in range(3):
        async with http.get("/api/whoami-v2") as answer:
            statuses.append(answer.status)
            last = answer.headers["RateLimit"], await answer.text()
    assert statuses == [200, 200, 429]
    assert last[0] == '"api";r=0;t=300'
    assert "you hit the quota of 2 api requests per 5 minutes period" in last[1]
    clock.step(300)
    async with http.get("/api/whoami-v2") as answer:
        assert answer.status == 200


async def test_full_storage_refuses_large_files_and_still_takes_small_ones(hub, client, http, tmp_path: Path):
    hub.limits = replace(hub.limits, public_storage_bytes=1000)
    (tmp_path / "m.pt").write_bytes(b"w" * 2000)
    kind, status, text = await client('out(attempt(lambda: commit([add("m.pt", "m.pt")])))')
    assert status == 403, (kind, text)
    assert "You have exceeded your public storage space" in text
    assert (await post(http))[0] == 200


async def test_bad_front_matter_of_a_readme_refuses_the_whole_commit(hub, http):
    body = (SMALL % "ok.json") + (SMALL % "README.md").splitlines()[1].replace('"x"', '"---\\na: [\\n---\\n"')
    async with http.post(COMMIT, data=body) as answer:
        assert answer.status == 400
    assert "ok.json" not in hub.repo("ada/sweeps").files()


async def test_bytes_that_do_not_match_their_digest_are_not_stored(hub, http):
    oid = "b" * 64
    batch = {"operation": "upload", "transfers": ["basic"], "objects": [{"oid": oid, "size": 3}], "hash_algo": "sha256"}
    async with http.post("/datasets/ada/sweeps.git/info/lfs/objects/batch", json=batch) as answer:
        actions = (await answer.json(content_type=None))["objects"][0]["actions"]
    async with http.put(actions["upload"]["href"], data=b"abc") as answer:
        assert answer.status == 400
    async with http.post(actions["verify"]["href"], json={"oid": oid, "size": 3}) as answer:
        assert answer.status == 404


@pytest.mark.parametrize(
    ("asked", "status", "got", "content_range"),
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=8-50", 206, b"89", "bytes 8-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
    ],
)
async def test_ranges_of_a_file(hub, http, asked: str, status: int, got: bytes | None, content_range: str):
    hub.repo("ada/sweeps").put({"a b/x.txt": b"0123456789"})
    url = "/datasets/ada/sweeps/resolve/main/a%20b/x.txt"
    async with http.get(url, headers={"Range": asked}) as answer:
        assert (answer.status, answer.headers["Content-Range"]) == (status, content_range)
        assert got is None or await answer.read() == got
    async with http.head(url) as answer:
        assert answer.headers["X-Repo-Commit"] == hub.repo("ada/sweeps").head()
        assert answer.headers["Content-Length"] == "10"
