"""The loop as a process: many cells, death in the middle, upgrades, quotas, a hung upload."""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

from cellkit.pod import REPO, Pod, ours
from gpupod_rehearsal.hub.simulator import HubSimulator

pytest_plugins = ["cellkit.fixtures"]


async def test_every_finished_cell_gets_one_commit_and_unfinished_ones_none(hub: HubSimulator, pod: Pod) -> None:
    for name in ("c1", "c2", "c3", "c4"):
        pod.order(name)
    pod.produce("c1")
    pod.produce("c2")
    pod.produce("c3", done=False)
    await pod.loop()
    cells = {cell["name"]: cell for cell in pod.state()["cells"].values()}
    assert {name: cell["state"] for name, cell in cells.items()} == {
        "c1": "Uploaded",
        "c2": "Uploaded",
        "c3": "Producing",
        "c4": "Pending",
    }
    assert [commit.title for commit in ours(hub)] == ["cell c2", "cell c1"]
    assert cells["c1"]["commit"]["oid"] == ours(hub)[1].oid


async def test_cells_the_operator_has_proof_of_are_left_alone(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1", state="Verified", commit="abc")
    pod.produce("c1")
    await pod.loop()
    assert pod.state()["cells"]["uid-c1"]["state"] == "Uploaded"
    assert hub.requests == ()


async def test_a_loop_killed_in_the_middle_of_an_upload_leaves_nothing_running_and_lands_after_a_restart(
    hub: HubSimulator, pod: Pod
) -> None:
    hub.arm("delay_after", "commit", seconds=30)
    pod.order("c1")
    pod.produce("c1")
    loop = await pod.start("watch", "--every", "0.05")
    await pod.until(lambda: ours(hub))
    children = _children(loop.pid)
    assert children
    os.kill(loop.pid, signal.SIGKILL)
    await loop.wait()
    await pod.until(lambda: not any(_alive(pid) for pid in children))
    assert pod.state()["cells"]["uid-c1"]["state"] == "Uploading"
    await pod.loop()
    assert pod.state()["cells"]["uid-c1"]["state"] == "Uploaded"
    assert len(ours(hub)) == 1
    assert pod.state()["cells"]["uid-c1"]["commit"]["oid"] == ours(hub)[0].oid


async def test_a_commit_quota_holds_every_cell_of_the_repository_with_one_request(hub: HubSimulator, pod: Pod) -> None:
    hub.arm("commit_quota", "commit", times=None, seconds=43 * 60)
    for name in ("c1", "c2", "c3"):
        pod.order(name)
        pod.produce(name)
    await pod.start("watch", "--every", "0.05")
    cells = await pod.until(
        lambda: (
            (found := pod.state()["cells"])
            and len(found) == 3
            and all(cell["state"] == "Blocked" for cell in found.values())
            and found
        )
    )
    posts = [request for request in hub.requests if request.operation == "commit"]
    assert len(posts) == 1
    for cell in cells.values():
        assert cell["error"]["exit"] == 10
        wait = datetime.fromisoformat(cell["retryAt"]) - datetime.now(UTC)
        assert 2400 < wait.total_seconds() < 3000


async def test_a_hung_upload_is_killed_and_repeated_without_xet(hub: HubSimulator, pod: Pod) -> None:
    hub.arm("delay_before", "preupload", seconds=60)
    pod.order("c1", progressDeadlineSeconds=2)
    pod.produce("c1")
    await pod.loop()
    assert pod.state()["cells"]["uid-c1"]["state"] == "Uploaded"
    log = pod.logs[-1]
    assert "NoProgress" in log
    assert "without Xet" in log
    assert len(ours(hub)) == 1


async def test_new_orders_are_taken_up_without_a_restart(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    pod.produce("c1")
    pod.produce("c2")
    loop = await pod.start("watch", "--every", "0.05")
    await pod.until(lambda: len(ours(hub)) == 1)
    pod.order("c2")
    await pod.until(lambda: len(ours(hub)) == 2)
    assert loop.returncode is None


async def test_broken_orders_are_reported_and_the_ones_before_stay_in_force(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    await pod.start("watch", "--every", "0.05")
    await pod.until(lambda: "uid-c1" in pod.state()["cells"])
    (pod.root / "cells.json").write_text('{"format":1,')
    await pod.until(lambda: "cannot be read" in (pod.state()["agent"]["problem"] or ""))
    pod.produce("c1")
    await pod.until(lambda: pod.state()["cells"]["uid-c1"]["state"] == "Uploaded")


async def test_one_unusable_entry_does_not_stop_the_others(hub: HubSimulator, pod: Pod) -> None:
    pod.cells.append({"name": "bad", "uid": "../x"})
    pod.order("c1")
    pod.produce("c1")
    await pod.loop()
    assert pod.state()["cells"]["uid-c1"]["state"] == "Uploaded"
    assert "cell bad" in pod.state()["agent"]["problem"]


async def test_a_second_loop_ends_at_once(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    first = await pod.start("watch", "--every", "0.05")
    await pod.until(lambda: pod.state()["agent"].get("pid") == first.pid)
    code, _, err = await pod.run("watch", "--every", "0.05")
    assert code == 0
    assert "runs already" in err
    assert first.returncode is None


async def test_the_loop_makes_room_for_a_newer_tree_after_the_commit_in_hand(hub: HubSimulator, pod: Pod) -> None:
    hub.arm("delay_before", "commit", seconds=1)
    pod.order("c1")
    pod.produce("c1")
    loop = await pod.start("watch", "--every", "0.05")
    await pod.until(lambda: any(request.operation == "preupload" for request in hub.requests))
    (pod.root / "agent" / "VERSION").write_text("a-newer-tree\n")
    await pod.until(lambda: loop.returncode is not None)
    assert loop.returncode == 0
    assert len(ours(hub)) == 1
    assert pod.state()["cells"]["uid-c1"]["state"] == "Uploaded"


async def test_a_stop_file_ends_the_loop(hub: HubSimulator, pod: Pod) -> None:
    loop = await pod.start("watch", "--every", "0.05")
    await pod.until(lambda: pod.state()["agent"].get("pid") == loop.pid)
    (pod.root / "agent" / "stop").touch()
    await pod.until(lambda: loop.returncode is not None)
    assert loop.returncode == 0


async def test_a_token_handed_over_later_unblocks_the_cell_at_once(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    pod.produce("c1")
    (pod.secrets / "token-uid-c1").unlink()
    await pod.start("watch", "--every", "0.05")
    await pod.until(lambda: pod.state()["cells"].get("uid-c1", {}).get("state") == "Blocked")
    assert pod.state()["cells"]["uid-c1"]["error"]["class"] == "TokenMissing"
    pod.give_token("uid-c1")
    await pod.until(lambda: pod.state()["cells"]["uid-c1"]["state"] == "Uploaded")


async def test_nothing_is_written_while_nothing_changes(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    pod.produce("c1")
    await pod.start("watch", "--every", "0.01")
    await pod.until(lambda: pod.state()["cells"].get("uid-c1", {}).get("state") == "Uploaded")
    path = pod.root / "agent" / "state.json"
    before, requests = path.stat().st_mtime_ns, len(hub.requests)
    pod.write_orders()
    pod.order("c2")
    await pod.until(lambda: "uid-c2" in pod.state()["cells"])
    changed = path.stat().st_mtime_ns
    assert changed > before
    (pod.root / "cells.json").touch()
    pod.write_orders()
    assert path.stat().st_mtime_ns == changed
    assert len(hub.requests) == requests


async def test_a_cell_the_operator_misses_files_of_is_listed_again_and_completed(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    pod.produce("c1")
    await pod.loop()
    hub.repo(REPO).put({}, delete=["sweeps/s/c1/evals/b.json"])
    await pod.loop()
    assert "sweeps/s/c1/evals/b.json" not in hub.repo(REPO).files("sweeps/s/c1/")
    pod.order("c1", state="Partial")
    await pod.loop()
    assert "sweeps/s/c1/evals/b.json" in hub.repo(REPO).files("sweeps/s/c1/")


async def test_status_tells_a_person_why_a_cell_waits(hub: HubSimulator, pod: Pod) -> None:
    hub.arm("private_storage_full", "commit", times=None)
    pod.order("c1")
    pod.produce("c1")
    await pod.start("watch", "--every", "0.05")
    await pod.until(lambda: pod.state()["cells"].get("uid-c1", {}).get("state") == "Blocked")
    code, out, _ = await pod.run("status")
    assert code == 0
    assert "running" in out
    assert "StorageQuota (exit 13)" in out
    assert json.dumps(pod.state()).count("hf_") == 0


def _children(pid: int) -> list[int]:
    with Path(f"/proc/{pid}/task/{pid}/children").open() as listing:
        return [int(child) for child in listing.read().split()]


def _alive(pid: int) -> bool:
    try:
        with Path(f"/proc/{pid}/stat").open() as stat:
            return stat.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


async def test_each_look_after_the_end_of_a_workload_is_told_at_once(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    await pod.start("watch", "--every", "0.05")
    await pod.until(lambda: pod.state()["agent"].get("heartbeat"))
    # Two beats within the time in which there is else only one.
    (pod.root / "a1").mkdir()
    (pod.root / "a1" / "exit.json").write_text('{"code": 0}')
    first = await pod.until(lambda: pod.state()["agent"]["heartbeat"])
    await pod.until(lambda: pod.state()["agent"]["heartbeat"] > first, seconds=10)
