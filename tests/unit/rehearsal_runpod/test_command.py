"""`python -m gpupod_rehearsal.runpod` and scenario files."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from decimal import Decimal
from pathlib import Path

import aiohttp
import pytest

from gpupod_rehearsal.runpod import Profile, scenario

OPERATOR = str(Path(__file__).resolve().parents[3] / "operator")
STORY = """
seed: 3
billingFactor: 60
profile: august
timings: fast
quotas: {minute: 1000}
accounts:
  - id: team-a
    balance: "12.50"
    spendLimit: 5
    keys: [{alias: a}, {alias: a-read, scopes: ["pods:read"]}]
hosts:
  - {id: h1, dataCenter: US-KS-2, gpuType: NVIDIA H200, gpus: 2, reclaimAfter: 60}
images:
  "my/image:1": {pullSeconds: 2, sizeGb: 30}
faults:
  - {name: wedge-later, target: {host: h1}, params: {uptime: 30}}
"""


async def run(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gpupod_rehearsal.runpod",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": OPERATOR},
    )


def private_json(path: str) -> dict[str, str]:
    """The content of a file that nobody else may read."""
    assert Path(path).stat().st_mode & 0o077 == 0
    return json.loads(Path(path).read_text())


def test_a_scenario_file_describes_the_world(tmp_path):
    (tmp_path / "s.yaml").write_text(STORY)
    story = scenario.read(tmp_path / "s.yaml")
    plan = story.blueprint
    assert (story.profile, story.quotas, plan.billing_factor) == (Profile.AUGUST, {"minute": 1000}, Decimal(60))
    assert [(host.id, host.gpus, host.reclaim_after) for host in plan.hosts] == [("h1", 2, 60)]
    assert plan.accounts[0].deposited == Decimal("12.50")
    assert plan.images["my/image:1"].size_gb == 30
    assert len(story.faults) == 1


@pytest.mark.parametrize(
    "document",
    [
        {"host": []},
        {"hosts": [{"id": "h", "colour": "red"}]},
        {"accounts": [{"id": "a", "key": 1}]},
        {"timings": {"p": 1}},
    ],
)
def test_a_scenario_with_a_strange_part_is_refused_by_name(document):
    with pytest.raises(scenario.ScenarioError):
        scenario.parse(document)


def test_a_key_file_may_only_name_known_aliases():
    plan = scenario.parse({"accounts": [{"id": "a", "keys": [{"alias": "one"}, {"alias": "two"}]}]}).blueprint
    keys = scenario.give_keys(plan, {"one": "given"})
    assert keys["one"] == "given"
    assert keys["two"].startswith("rpa_")
    with pytest.raises(scenario.ScenarioError, match="three"):
        scenario.give_keys(plan, {"three": "x"})


async def test_the_command_tells_its_url_and_serves_the_scenario_until_it_is_ended(tmp_path):
    (tmp_path / "s.yaml").write_text(STORY)
    (tmp_path / "k.yaml").write_text("a: rpa_from_a_file\n")
    process = await run(
        *("--port", "0", "--hosts", "null", "--workdir", str(tmp_path / "w"), "--keys", str(tmp_path / "k.yaml")),
        *("--scenario", str(tmp_path / "s.yaml")),
    )
    try:
        ready = json.loads(await process.stdout.readline())
        assert private_json(ready["keysFile"])["a"] == "rpa_from_a_file"
        headers = {"Authorization": "Bearer rpa_from_a_file"}
        async with aiohttp.ClientSession(headers=headers) as session:
            async with session.get(f"{ready['url']}/v2/pods") as response:
                assert await response.json() == {"pods": []}
            async with session.get(f"{ready['url']}/_sim/ledger") as response:
                ledger = await response.json()
                assert (ledger["billingFactor"], ledger["balance"]) == ("60", {"team-a": "12.50"})
            async with session.get(f"{ready['url']}/_sim/faults") as response:
                assert [rule["name"] for rule in (await response.json())["faults"]] == ["wedge-later"]
    finally:
        process.send_signal(signal.SIGTERM)
        out, errors = await process.communicate()
    assert process.returncode == 0, errors
    assert b"rpa_from_a_file" not in out + errors


async def test_a_broken_scenario_ends_the_command_with_one_line(tmp_path):
    (tmp_path / "s.yaml").write_text("faults: [{name: nope}]")
    process = await run("--hosts", "null", "--workdir", str(tmp_path), "--scenario", str(tmp_path / "s.yaml"))
    out, errors = await process.communicate()
    assert (process.returncode, out) == (2, b"")
    assert errors.decode().count("\n") == 1
    assert "nope" in errors.decode()
