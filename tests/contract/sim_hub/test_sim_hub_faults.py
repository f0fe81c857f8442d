"""Faults before and after the fact, as the unmodified client and a plain one meet them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import aiohttp
import pytest

LANDS = 'out(attempt(lambda: commit([add("x.json", b"1")])))'


@pytest.mark.parametrize(
    ("fault", "status", "landed"),
    [
        ("status_before", 500, False),
        ("status_after", 504, True),
        ("drop_before", None, False),
        ("drop_after", None, True),
        ("commit_in_progress", 409, False),
        ("head_moved", 412, False),
        ("commit_quota", 429, False),
        ("queue_full", 429, False),
        ("api_quota", 429, False),
        ("private_storage_full", 403, False),
    ],
)
async def test_a_failed_commit_call_says_nothing_about_the_outcome(hub, client, fault, status, landed):
    hub.arm(fault, "commit", status=status or 500, seconds=120)
    kind, seen, _ = await client(LANDS)
    assert kind != "landed"
    assert seen == status
    assert ("x.json" in hub.repo("ada/sweeps").files()) is landed
    assert [request.fault for request in hub.requests if request.operation == "commit"] == [fault]
    # The next call finds the Hub well again.
    assert (await client(LANDS))[0] == "landed"
    assert "x.json" in hub.repo("ada/sweeps").files()


async def test_a_fault_strikes_only_its_operation_its_repository_and_its_number_of_times(hub):
    hub.create_repo("ada/other")
    hub.arm("status_before", "tree", repo="ada/other", skip=1, times=2, status=503)
    async with aiohttp.ClientSession(base_url=hub.url) as http:

        async def status(repo: str, page: str) -> int:
            async with http.get(f"/api/datasets/{repo}/{page}") as answer:
                return answer.status

        assert await status("ada/sweeps", "tree/main") == 200
        assert await status("ada/other", "commits/main") == 200
        assert [await status("ada/other", "tree/main") for _ in range(4)] == [200, 503, 503, 200]


async def test_a_process_of_its_own_takes_tokens_from_files_and_faults_over_http(tmp_path: Path):
    (tmp_path / "token").write_text("hf_file_token\n")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gpupod_rehearsal.hub", "--workdir", str(tmp_path / "hub")),
        *("--token", f"ada=file:{tmp_path / 'token'}", "--token", "bob=env:BOB_TOKEN:read"),
        *("--repo", "dataset:ada/sweeps:private"),
        env={**os.environ, "PYTHONPATH": "operator", "BOB_TOKEN": "hf_env_token"},
        cwd=Path(__file__).parents[3],
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        url = json.loads(await process.stdout.readline())["url"]
        ada = {"Authorization": "Bearer hf_file_token"}
        async with aiohttp.ClientSession(base_url=url) as http:
            async with http.get("/api/whoami-v2", headers={"Authorization": "Bearer hf_env_token"}) as answer:
                assert (await answer.json())["auth"]["accessToken"]["role"] == "read"
            async with http.post("/_hub/faults", json={"name": "no such fault"}) as answer:
                assert answer.status == 400
            async with http.post("/_hub/faults", json={"name": "queue_full", "operation": "refs"}) as answer:
                assert answer.status == 200
            async with http.get("/api/datasets/ada/sweeps/refs", headers=ada) as answer:
                assert answer.status == 429
            body = '{"key":"header","value":{"summary":"cell"}}\n{"key":"file","value":{"path":"a.json","content":"1"}}'
            async with http.post("/api/datasets/ada/sweeps/commit/main", data=body, headers=ada) as answer:
                assert answer.status == 200
            async with http.get("/_hub/repos/datasets/ada/sweeps/tree") as answer:
                assert "a.json" in [file["path"] for file in (await answer.json())["files"]]
            async with http.get("/_hub/repos/datasets/ada/sweeps/commits") as answer:
                newest = (await answer.json())[0]
                assert (newest["title"], newest["files"], newest["author"]) == ("cell", ["a.json"], "ada")
            async with http.get("/_hub/repos/datasets/ada/sweeps/file?path=a.json") as answer:
                assert await answer.read() == b"1"
            async with http.get("/_hub/requests") as answer:
                log = await answer.text()
        assert "hf_file_token" not in log
        assert [item["fault"] for item in json.loads(log) if item["operation"] == "refs"] == ["queue_full"]
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


@pytest.mark.parametrize("token", ["hf_plain", "ada=env:NOT_SET_ANYWHERE", "ada=file:/does/not/exist"])
async def test_a_token_that_cannot_be_read_ends_the_command_with_2(token: str):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gpupod_rehearsal.hub", "--token", token),
        env={**os.environ, "PYTHONPATH": "operator"},
        cwd=Path(__file__).parents[3],
        stderr=asyncio.subprocess.PIPE,
    )
    _, stderr = await process.communicate()
    assert process.returncode == 2
    assert len(stderr.splitlines()) == 1
