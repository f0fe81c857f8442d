"""One upload, by the unmodified huggingface_hub in a process of its own, against the simulated Hub."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cellkit.pod import READ_ONLY, REPO, Pod, ours
from gpupod_rehearsal.hub.simulator import HubSimulator

pytest_plugins = ["cellkit.fixtures"]


async def test_a_finished_cell_lands_in_one_commit_with_its_manifest(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    pod.produce("c1")
    code, receipt = await pod.once("c1")
    assert code == 0
    stored = hub.repo(REPO).files("sweeps/s/c1/")
    assert stored["sweeps/s/c1/evals/a.json"] == b'{"score":1}'
    manifest = stored["sweeps/s/c1/_cell/manifest.json"]
    assert hashlib.sha256(manifest).hexdigest() == receipt["manifest"]["digest"]
    assert [entry["path"] for entry in json.loads(manifest)["files"]] == ["evals/a.json", "evals/b.json"]
    (commit,) = ours(hub)
    assert commit.title == "cell c1"
    assert commit.description.splitlines() == [
        "SweepCell-Uid: uid-c1",
        f"SweepCell-Manifest: {receipt['manifest']['digest']}",
        "SweepCell-Attempt: a1",
        "SweepCell-Format: 1",
    ]
    assert receipt["commit"]["oid"] == commit.oid


@pytest.mark.parametrize("more", [(), ("--no-xet",)], ids=["xet", "classic-lfs"])
async def test_large_files_land_whole(hub: HubSimulator, pod: Pod, more: tuple[str, ...]) -> None:
    tensor = os.urandom(11 * 1024 * 1024)
    pod.order("c1", artifacts=[{"name": "store", "path": str(pod.work / "out/c1/store"), "files": ["t.safetensors"]}])
    pod.produce("c1", {"store/t.safetensors": tensor})
    code, _ = await pod.once("c1", *more)
    assert code == 0
    assert hub.repo(REPO).read("sweeps/s/c1/store/t.safetensors") == tensor


async def test_a_repeated_run_adopts_the_commit_and_makes_none(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    pod.produce("c1")
    _, first = await pod.once("c1")
    (pod.root / "agent" / "manifests" / "uid-c1.json").unlink()
    code, second = await pod.once("c1")
    assert (code, second["adopted"]) == (0, True)
    assert second["commit"]["oid"] == first["commit"]["oid"]
    assert second["manifest"]["digest"] == first["manifest"]["digest"]
    assert len(ours(hub)) == 1


async def test_a_new_run_of_the_producer_replaces_our_own_earlier_version(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    pod.produce("c1")
    await pod.once("c1")
    pod.produce("c1", {"evals/a.json": b'{"score":9}'})
    code, receipt = await pod.once("c1")
    assert (code, receipt["adopted"]) == (0, False)
    assert hub.repo(REPO).read("sweeps/s/c1/evals/a.json") == b'{"score":9}'


async def test_a_done_file_written_again_over_equal_files_gets_a_new_manifest(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    base = pod.produce("c1")
    _, first = await pod.once("c1")
    later = (base / "DONE").stat().st_mtime_ns + 1_000_000_000
    os.utime(base / "DONE", ns=(later, later))
    code, second = await pod.once("c1")
    assert code == 0
    assert second["manifest"]["digest"] != first["manifest"]["digest"]
    stored = hub.repo(REPO).read("sweeps/s/c1/_cell/manifest.json")
    assert json.loads(stored)["doneFile"]["mtimeNs"] == later


@pytest.mark.parametrize("path", ["sweeps/s/c1/evals/a.json", "sweeps/s/c1/_cell/manifest.json"])
async def test_foreign_content_is_never_overwritten(hub: HubSimulator, pod: Pod, path: str) -> None:
    hub.repo(REPO).put({path: b"someone else's"})
    pod.order("c1")
    pod.produce("c1")
    code, receipt = await pod.once("c1")
    assert (code, receipt["error"]["class"]) == (14, "Mismatch")
    assert hub.repo(REPO).read(path) == b"someone else's"
    assert ours(hub) == []


async def test_a_file_of_ours_that_another_person_edited_is_not_overwritten(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    pod.produce("c1")
    await pod.once("c1")
    hub.repo(REPO).put({"sweeps/s/c1/evals/a.json": b"edited"})
    code, receipt = await pod.once("c1")
    assert (code, receipt["error"]["class"]) == (14, "Mismatch")
    assert hub.repo(REPO).read("sweeps/s/c1/evals/a.json") == b"edited"


async def test_a_file_lost_from_the_hub_is_sent_again(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    pod.produce("c1")
    await pod.once("c1")
    hub.repo(REPO).put({}, delete=["sweeps/s/c1/evals/a.json"])
    code, receipt = await pod.once("c1")
    assert (code, receipt["adopted"]) == (0, False)
    assert hub.repo(REPO).read("sweeps/s/c1/evals/a.json") == b'{"score":1}'


@pytest.mark.parametrize("fault", ["status_after", "drop_after"])
async def test_a_commit_whose_answer_was_lost_is_adopted(hub: HubSimulator, pod: Pod, fault: str) -> None:
    hub.arm(fault, "commit")
    pod.order("c1")
    pod.produce("c1")
    code, receipt = await pod.once("c1")
    assert (code, receipt["adopted"]) == (0, True)
    (commit,) = ours(hub)
    assert receipt["commit"]["oid"] == commit.oid


@pytest.mark.parametrize("fault", ["status_before", "drop_before", "html_page"])
async def test_an_unclear_answer_without_a_commit_is_ambiguous_and_lands_next_time(
    hub: HubSimulator, pod: Pod, fault: str
) -> None:
    hub.arm(fault, "commit")
    pod.order("c1")
    pod.produce("c1")
    code, receipt = await pod.once("c1")
    if code == 0:
        # A page of HTML instead of the answer may hide a commit that was made.
        assert fault == "html_page"
    else:
        assert (code, receipt["error"]["class"]) == (15, "Ambiguous")
        assert ours(hub) == []
        code, _ = await pod.once("c1")
    assert code == 0
    assert len(ours(hub)) == 1


@pytest.mark.parametrize(
    ("fault", "code", "kind", "least", "most"),
    [
        ("commit_quota", 10, "CommitQuota", 2400, 3700),
        ("queue_full", 10, "QueueFull", 5, 60),
        ("commit_in_progress", 11, "CommitInProgress", 1, 60),
        ("head_moved", 11, "HeadMoved", 1, 60),
        ("private_storage_full", 13, "StorageQuota", 1800, 90000),
        ("public_storage_full", 13, "StorageQuota", 1800, 90000),
    ],
)
async def test_each_refusal_of_a_commit_has_its_code_and_its_wait(
    hub: HubSimulator, pod: Pod, fault: str, code: int, kind: str, least: float, most: float
) -> None:
    hub.arm(fault, "commit", times=None, seconds=43 * 60)
    pod.order("c1")
    pod.produce("c1")
    got, receipt = await pod.once("c1")
    assert (got, receipt["error"]["class"]) == (code, kind)
    assert least <= receipt["retryAfter"] <= most
    posts = [request for request in hub.requests if request.operation == "commit"]
    assert len(posts) == 1


async def test_the_real_commit_quota_is_told_from_a_healthy_rate_limit_header(hub: HubSimulator, pod: Pod) -> None:
    hub.limits = replace(hub.limits, commits_per_hour=1)
    for name in ("c1", "c2"):
        pod.order(name)
        pod.produce(name)
    assert (await pod.once("c1"))[0] == 0
    code, receipt = await pod.once("c2")
    assert (code, receipt["error"]["class"]) == (10, "CommitQuota")
    assert 3000 < receipt["retryAfter"] <= 3660


@pytest.mark.parametrize(
    ("token", "kind"),
    [("hf_unknowntoken", "Unauthorized"), (READ_ONLY, "Forbidden"), ("", "TokenMissing")],
)
async def test_a_token_that_may_not_write_is_an_auth_refusal(
    hub: HubSimulator, pod: Pod, token: str, kind: str
) -> None:
    pod.order("c1")
    pod.produce("c1")
    pod.give_token("uid-c1", token)
    code, receipt = await pod.once("c1")
    assert (code, receipt["error"]["class"]) == (12, kind)
    assert ours(hub) == []


async def test_a_repository_that_does_not_exist_is_named(hub: HubSimulator, pod: Pod) -> None:
    there = {"repo": "ada/nothing", "type": "dataset", "revision": "main", "path": "x"}
    pod.order("c1", destination=there)
    pod.produce("c1")
    code, receipt = await pod.once("c1")
    assert (code, receipt["error"]["class"]) == (12, "RepoNotFound")


async def test_a_gitignore_that_drops_files_is_found_out(hub: HubSimulator, pod: Pod) -> None:
    hub.repo(REPO).put({".gitignore": b"b.json\n"})
    pod.order("c1")
    pod.produce("c1")
    code, receipt = await pod.once("c1")
    assert (code, receipt["error"]["class"]) == (14, "IgnoredByHub")
    assert "evals/b.json" in receipt["error"]["message"]


async def test_a_hub_that_is_not_there_is_a_transport_refusal(hub: HubSimulator, pod: Pod) -> None:
    (pod.root / "agent" / "settings.json").write_text(json.dumps({"hubEndpoint": "http://127.0.0.1:9"}))
    pod.order("c1")
    pod.produce("c1")
    code, receipt = await pod.once("c1", "--no-xet")
    assert (code, receipt["error"]["class"]) == (16, "Unreachable")


def _link_folder(base: Path) -> None:
    (base / "elsewhere").mkdir()
    (base / "evals" / "linked").symlink_to(base / "elsewhere")


def _link_root(base: Path) -> None:
    (base / "evals").rename(base / "real")
    (base / "evals").symlink_to(base / "real")


def _git(base: Path) -> None:
    (base / "evals" / ".git").mkdir()
    (base / "evals" / ".git" / "x.json").write_text("{}")


def _fifo(base: Path) -> None:
    os.mkfifo(base / "evals" / "pipe.json")


def _empty(base: Path) -> None:
    for file in (base / "evals").iterdir():
        file.unlink()


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (_link_folder, "SymlinkedDirectory"),
        (_link_root, "SymlinkedDirectory"),
        (lambda base: (base / "evals" / "gone.json").symlink_to(base / "nowhere"), "DanglingLink"),
        (_git, "ReservedName"),
        (_fifo, "NotAFile"),
        (_empty, "FilesMissing"),
        (lambda base: (base / "evals").rename(base / "other"), "PathMissing"),
    ],
)
async def test_what_cannot_be_taken_is_named_and_nothing_is_sent(
    hub: HubSimulator, pod: Pod, spoil: Callable[[Path], None], kind: str
) -> None:
    pod.order("c1")
    base = pod.produce("c1", done=False)
    spoil(base)
    (base / "DONE").write_text("done\n")
    code, receipt = await pod.once("c1")
    assert (code, receipt["error"]["class"]) == (14, kind)
    assert str(pod.work) in receipt["error"]["message"]
    assert hub.requests == ()


async def test_a_done_file_older_than_an_artifact_does_not_count(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    base = pod.produce("c1")
    newer = (base / "DONE").stat().st_mtime_ns + 1
    os.utime(base / "evals" / "a.json", ns=(newer, newer))
    code, receipt = await pod.once("c1")
    assert (code, receipt["error"]["class"]) == (3, "DoneFileStale")


async def test_a_second_upload_at_once_is_refused(hub: HubSimulator, pod: Pod) -> None:
    hub.arm("delay_before", "preupload", seconds=30)
    pod.order("c1")
    pod.produce("c1")
    await pod.start("once", "--cell", "c1")
    await pod.until(lambda: any(request.operation == "tree" for request in hub.requests))
    code, receipt = await pod.once("c1")
    assert (code, receipt["error"]["class"]) == (11, "UploadInProgress")


async def test_an_unknown_cell_is_refused_with_the_known_names(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    code, _, err = await pod.run("once", "--cell", "c9")
    assert code == 14
    assert "team/c1" in err


async def test_the_dry_run_shows_the_manifest_and_sends_nothing(hub: HubSimulator, pod: Pod) -> None:
    pod.order("c1")
    pod.produce("c1")
    code, out, _ = await pod.run("manifest", "--cell", "c1")
    assert code == 0
    assert '"path": "evals/a.json"' in out
    assert hub.requests == ()


async def test_help_explains_the_exit_codes(pod: Pod) -> None:
    code, out, _ = await pod.run("--help")
    assert code == 0
    assert "15  the commit may or may not have landed" in out
