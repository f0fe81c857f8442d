"""Cells that cannot be taken as they are: named with what to change, never lost, and no pod is ended for it."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.demo.stage import API, NAMESPACE
from worldkit.fixtures import Theatre, condition, is_true, performing, pod_id
from worldkit.sweep import cell, cell_until, disk, finish, gpupod, repository

pytestmark = pytest.mark.asyncio(loop_scope="module")

THEIRS = "somebody/theirs"
HIDDEN = "somebody/hidden"
CELLS = (
    cell("good"),
    cell("missing"),
    cell("linked"),
    cell("foreign", repo=THEIRS),
    cell("doomed", repo=THEIRS),
    cell("repaired"),
    cell("hidden", repo=HIDDEN),
)
SCRIPT = (
    finish("good"),
    "mkdir -p /workspace/out/missing && echo done > /workspace/out/missing/DONE",
    "mkdir -p /workspace/out/repaired && echo done > /workspace/out/repaired/DONE",
    "mkdir -p /workspace/elsewhere /workspace/out/linked && echo {} > /workspace/elsewhere/score.json",
    "ln -sfn /workspace/elsewhere /workspace/out/linked/evals && echo done > /workspace/out/linked/DONE",
    finish("foreign"),
    finish("doomed"),
    finish("hidden"),
)


class Sweep:
    """One pod with cells of every kind, and what was said of them before there was a pod."""

    def __init__(self, theatre: Theatre) -> None:
        self.theatre = theatre
        self.podless: dict[str, Any] = {}
        self.pod = ""

    async def until_said(self, name: str, reason: str) -> Any:
        """The cell once it is not Ready for this reason."""
        return await cell_until(self.theatre, name, lambda c: condition(c, "Ready").get("reason") == reason)

    async def verified(self, name: str) -> Any:
        """The cell once it is on the Hub."""
        return await cell_until(self.theatre, name, is_true("Verified"))

    async def commits(self, name: str) -> int:
        """Commits of the good repository that belong to a cell."""
        found = await self.theatre.stage.hub("/_hub/repos/datasets/example-org/sweep-results/commits")
        return sum(c["title"] == f"cell {name}" for c in found)

    async def pod_stands(self) -> None:
        """The one pod of the sweep that was ever made, running."""
        pods = (await self.theatre.stage.sim("GET", "/_sim/pods"))["pods"]
        ours = [p for p in pods if "/demo/sweep/" in (p["owner"] or "")]
        assert [(p["podId"], p["status"], p["alive"]) for p in ours] == [(self.pod, "RUNNING", True)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sweep(control_plane: ControlPlane) -> AsyncIterator[Sweep]:
    async with performing(control_plane) as theatre:
        stage = theatre.stage
        made = Sweep(theatre)
        await repository(stage, THEIRS)
        await repository(stage, HIDDEN, private=True)
        for manifest in CELLS:
            await stage.kube.apply(manifest, NAMESPACE)
        made.podless = await made.until_said("good", "PodNotFound")
        await stage.kube.apply(gpupod(SCRIPT), NAMESPACE)
        made.pod = pod_id(await theatre.until(is_true("Ready"), "sweep")) or ""
        yield made


async def test_a_cell_without_its_pod_says_so_and_goes_on_once_the_pod_is_there(sweep: Sweep) -> None:
    ready, stalled = condition(sweep.podless, "Ready"), condition(sweep.podless, "Stalled")
    assert (ready["status"], stalled["status"]) == ("False", "True")
    assert "there is no GpuPod sweep in namespace demo: create it" in ready["message"]
    good = await sweep.verified("good")
    assert condition(good, "Ready")["status"] == "True"
    assert await sweep.commits("good") == 1


@pytest.mark.parametrize(
    ("name", "reason", "words"),
    [
        ("missing", "PathMissing", "/workspace/out/missing/evals does not exist"),
        ("linked", "SymlinkedDirectory", "/workspace/out/linked/evals is a link to a directory; name the directory"),
    ],
)
async def test_a_path_that_cannot_be_taken_is_named(sweep: Sweep, name: str, reason: str, words: str) -> None:
    blocked = await sweep.until_said(name, reason)
    assert blocked["status"]["phase"] == "Blocked"
    assert condition(blocked, "Stalled")["status"] == "True"
    assert condition(blocked, "Produced")["status"] == "True"
    assert words in condition(blocked, "Ready")["message"]
    await sweep.theatre.lists(10)
    after = await sweep.theatre.admin.get("SweepCell", name, namespace=NAMESPACE)
    assert after["metadata"]["resourceVersion"] == blocked["metadata"]["resourceVersion"], "said once"
    assert await sweep.commits(name) == 0
    await sweep.pod_stands()


async def test_a_repaired_path_is_uploaded_without_any_edit_of_an_object(sweep: Sweep) -> None:
    before = await sweep.until_said("repaired", "PathMissing")
    out = await disk(sweep.theatre, sweep.pod) / "out" / "repaired"
    (out / "evals").mkdir()
    (out / "evals" / "score.json").write_text("{}\n")
    (out / "DONE").write_text("done again\n")
    after = await sweep.verified("repaired")
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert after["status"]["phase"] == "Verified"
    assert "lastError" not in after["status"]
    assert await sweep.commits("repaired") == 1


@pytest.mark.parametrize(
    ("name", "reason", "words"),
    [
        ("foreign", "HubForbidden", "the token needs write access"),
        ("hidden", "HubRepoNotFound", "does not exist, or the token may not see it"),
    ],
)
async def test_a_repository_that_cannot_be_written_keeps_cell_and_pod(
    sweep: Sweep, name: str, reason: str, words: str
) -> None:
    blocked = await sweep.until_said(name, reason)
    assert blocked["status"]["phase"] == "Blocked"
    assert condition(blocked, "Stalled")["status"] == "True"
    assert words in condition(blocked, "Ready")["message"]
    asked = len(await sweep.theatre.stage.hub("/_hub/requests"))
    await sweep.theatre.lists(20)
    assert len(await sweep.theatre.stage.hub("/_hub/requests")) - asked <= 20, "ten seconds of seven cells: no storm"
    after = await sweep.theatre.admin.get("SweepCell", name, namespace=NAMESPACE)
    assert after["status"]["phase"] == "Blocked"
    assert (await disk(sweep.theatre, sweep.pod) / "out" / name / "evals" / "score.json").exists()
    await sweep.pod_stands()


async def test_a_stop_waits_for_blocked_cells_and_names_them(sweep: Sweep) -> None:
    await sweep.until_said("foreign", "HubForbidden")
    await sweep.theatre.stage.kube.apply(gpupod(SCRIPT, state="Stopped"), NAMESPACE)
    try:
        held = await sweep.theatre.until(lambda p: "Stop of pod" in said_by(p), "sweep")
        assert condition(held, "ArtifactsSafe")["status"] == "False"
        assert condition(held, "Stalled")["status"] == "True"
        assert "cell foreign is finished and not verified" in said_by(held)
        assert f'gpupod.dev/abandon-data: "{sweep.pod}:' in said_by(held)
        await sweep.theatre.lists(10)
        await sweep.pod_stands()
    finally:
        await sweep.theatre.stage.kube.apply(gpupod(SCRIPT, state="Running"), NAMESPACE)
    await sweep.theatre.until(lambda p: is_true("Ready")(p) and "Stop of pod" not in said_by(p), "sweep")


def said_by(pod: dict[str, Any] | None) -> str:
    """status.message, empty while there is none."""
    return str(((pod or {}).get("status") or {}).get("message") or "")


async def test_a_deleted_cell_whose_pod_holds_its_data_waits_and_goes_when_it_is_given_up(sweep: Sweep) -> None:
    await sweep.until_said("doomed", "HubForbidden")
    await sweep.theatre.stage.kube.delete(API, "SweepCell", "doomed", NAMESPACE)
    held = await sweep.until_said("doomed", "TeardownBlocked")
    said = condition(held, "Ready")["message"]
    assert f"pod {sweep.pod} may hold it and the Hub does not" in said
    assert f'gpupod.dev/abandon-data: "{sweep.pod}: <why>"' in said
    await annotate(sweep, "doomed", "some-other-pod: not this one")
    await sweep.theatre.lists(6)
    assert await sweep.theatre.admin.find("SweepCell", "doomed", namespace=NAMESPACE), "bound to another pod"
    await annotate(sweep, "doomed", f"{sweep.pod}: a trial")
    await sweep.theatre.admin.wait_gone("SweepCell", "doomed", namespace=NAMESPACE, timeout=30)
    await sweep.pod_stands()


async def test_a_deleted_cell_goes_at_once_when_it_is_on_the_hub(sweep: Sweep) -> None:
    await sweep.theatre.stage.kube.apply(cell("late"), NAMESPACE)
    out = await disk(sweep.theatre, sweep.pod) / "out" / "late"
    (out / "evals").mkdir(parents=True)
    (out / "evals" / "score.json").write_text("{}\n")
    (out / "DONE").write_text("done\n")
    await sweep.verified("late")
    await sweep.theatre.stage.kube.delete(API, "SweepCell", "late", NAMESPACE)
    await sweep.theatre.admin.wait_gone("SweepCell", "late", namespace=NAMESPACE, timeout=30)
    assert await sweep.commits("late") == 1
    await sweep.pod_stands()


async def annotate(sweep: Sweep, name: str, value: str) -> None:
    body = {"metadata": {"annotations": {"gpupod.dev/abandon-data": value}}}
    await sweep.theatre.admin.patch("SweepCell", name, body, namespace=NAMESPACE)


async def test_a_deletion_held_for_a_bad_token_goes_on_once_the_token_is_good(sweep: Sweep) -> None:
    stage, theatre = sweep.theatre.stage, sweep.theatre
    await stage.kube.apply(token("hf-rotated", "hf_nobody_knows_this_one"), NAMESPACE)
    await stage.kube.apply(cell("rotated", pod="second", token_from="hf-rotated"), NAMESPACE)
    await stage.kube.apply(gpupod((finish("rotated"),), "second"), NAMESPACE)
    await cell_until(theatre, "rotated", is_true("Produced"))
    await sweep.until_said("rotated", "HubUnauthorized")
    second = pod_id(await theatre.until(is_true("Ready"), "second"))
    await stage.kube.delete(API, "GpuPod", "second", NAMESPACE)
    held = await theatre.until(lambda p: "Delete of pod" in said_by(p), "second")
    assert "rotated" in said_by(held)
    assert f'gpupod.dev/abandon-data: "{second}:' in said_by(held)
    await theatre.lists(6)
    assert second in [p["podId"] for p in await theatre.alive()]
    await stage.kube.apply(token("hf-rotated", stage.hub_token), NAMESPACE)
    await theatre.admin.wait_gone("GpuPod", "second", namespace=NAMESPACE, timeout=45)
    assert second not in [p["podId"] for p in await theatre.alive()]
    assert await sweep.commits("rotated") == 1
    await sweep.verified("rotated")
    await sweep.pod_stands()


def token(name: str, value: str) -> dict[str, Any]:
    """A Secret with a token of the Hub."""
    data = {"token": base64.b64encode(value.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
