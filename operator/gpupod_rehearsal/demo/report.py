"""The closing report, from the ledger, the Hub's own tree and the dead pod's directory. Never from hopes."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from rich.console import Console

from gpupod_rehearsal.demo.acts import Story
from gpupod_rehearsal.demo.stage import Stage

REPO = "/_hub/repos/datasets/example-org/sweep-results"


@dataclass(slots=True)
class Report:
    """Figures and broken promises; `problems` empty means exit 0."""

    cells: int = 0
    verified: int = 0
    rerun: list[str] = field(default_factory=list)
    finished_not_uploaded: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    billed: Decimal = Decimal(0)
    leaked: Decimal = Decimal(0)
    pods: list[dict[str, Any]] = field(default_factory=list)
    commits: int = 0
    problems: list[str] = field(default_factory=list)


async def make_report(stage: Stage, story: Story) -> Report:
    """Look at everything once more and count."""
    report = Report(cells=len(story.cells))
    tree = await stage.hub(f"{REPO}/tree")
    commits = await stage.hub(f"{REPO}/commits")
    files = {f["path"]: f for f in tree["files"]}
    for cell in story.cells:
        await _cell(stage, cell, files, report)
    report.commits = sum(c["title"].startswith("cell ") for c in commits)
    _dead_disk(story, report, commits)
    await _money(stage, story, report)
    if story.login is None or story.login.startswith("FAILED"):
        report.problems.append(f"plain ssh did not log in to the new pod: {story.login}")
    return report


async def _cell(stage: Stage, cell: dict[str, Any], files: dict[str, Any], report: Report) -> None:
    """Byte for byte: what the Hub really stores against the manifest, and the manifest against its digest."""
    name, spec = cell["metadata"]["name"], cell["spec"]
    prefix = spec["destination"]["path"].strip("/")
    status = cell.get("status") or {}
    path = f"{prefix}/_cell/manifest.json"
    if path not in files:
        report.lost.append(name)
        report.problems.append(f"{name}: no manifest on the Hub")
        return
    raw = await _bytes(stage, path)
    manifest = json.loads(raw)
    digest = hashlib.sha256(raw).hexdigest()
    wrong = [
        f["path"] for f in manifest["files"] if (files.get(f"{prefix}/{f['path']}") or {}).get("sha256") != f["sha256"]
    ]
    if wrong:
        report.problems.append(f"{name}: {', '.join(wrong)} differ from the manifest")
    elif status.get("phase") != "Verified" or (status.get("manifest") or {}).get("digest") != digest:
        report.problems.append(f"{name}: the status says {status.get('phase')} for another manifest")
    else:
        report.verified += 1


async def _bytes(stage: Stage, path: str) -> bytes:
    async with stage.session.get(f"{stage.hub_url}{REPO}/file", params={"path": path}) as answer:
        answer.raise_for_status()
        return await answer.read()


def _dead_disk(story: Story, report: Report, commits: list[dict[str, Any]]) -> None:
    """Which cells the second pod computed, and which of them the first one had finished without an upload."""
    by_cell: dict[str, int] = {}
    for commit in commits:
        if commit["title"].startswith("cell "):
            name = commit["title"].removeprefix("cell ")
            by_cell[name] = by_cell.get(name, 0) + 1
    receipt = story.receipt or {}
    report.rerun = list(receipt.get("rerun") or [])
    twice = [name for name, count in by_cell.items() if count > 1]
    if twice:
        report.problems.append(f"more than one commit for {', '.join(sorted(twice))}")
    report.finished_not_uploaded = sorted(story.finished_there & set(report.rerun))


async def _money(stage: Stage, story: Story, report: Report) -> None:
    ledger = await stage.sim("GET", "/_sim/ledger")
    report.pods = ledger["pods"]
    report.billed = Decimal(ledger["total"])
    known = {story.first_pod, story.second_pod}
    report.leaked = sum((Decimal(p["billed"]) for p in ledger["pods"] if p["podId"] not in known), Decimal(0))
    spans = sorted((p["created"], p["deleted"] or "9999") for p in ledger["pods"])
    for (_, ended), (began, _) in itertools.pairwise(spans):
        if began < ended:
            report.problems.append("two pods were billed at the same time")
    truth = (await stage.sim("GET", "/_sim/pods"))["pods"]
    running = [p["podId"] for p in truth if p.get("status") in ("RUNNING", "STARTING", "PROVISIONING")]
    if running:
        report.problems.append(f"still running at the end: {', '.join(running)}")
    if report.leaked:
        report.problems.append(f"${report.leaked:.4f} were billed by pods that no object knew")


def show(report: Report, story: Story, console: Console) -> None:
    """The report as a person reads it."""

    def line(text: str = "", **style: Any) -> None:
        console.print(text, soft_wrap=True, **{"highlight": False, **style})

    line()
    line("[bold]Report[/bold]" if not report.problems else "[bold red]Report[/bold red]")
    line(
        f"  cells      {report.verified} of {report.cells} verified byte for byte on the Hub, "
        f"in {report.commits} commits"
    )
    line(
        f"             {len(report.rerun)} in flight at the wedge and re-run ({', '.join(report.rerun) or 'none'}), "
        f"of them {len(report.finished_not_uploaded)} finished but not uploaded; {len(report.lost)} lost"
    )
    line(
        f"  money      ${report.billed:.4f} billed in all, ${report.leaked:.4f} leaked (each second billed as a minute)"
    )
    for pod in report.pods:
        line(
            f"             pod {pod['podId']}  ${Decimal(pod['billed']):.4f}  "
            f"{'deleted' if pod['deleted'] else 'stopped'}"
        )
    line(
        f"  wedge      {story.cause or 'not named'}; from the fault {_span(story, story.detected)} to detection, "
        f"{_span(story, story.gone)} to gone, {_span(story, story.ready_again)} to Ready again"
    )
    receipt = story.receipt or {}
    line(
        f"  receipt    pod {receipt.get('podId')}, {receipt.get('reason')} at {receipt.get('at')}: "
        f"{receipt.get('verified')} verified, {len(receipt.get('rerun') or [])} to re-run, "
        f"digest {(receipt.get('digest') or '')[:16]}"
    )
    line(f"  ssh        {story.login}")
    line("  pods.conf  as rendered for the new pod (workload.onSuccess has stopped it since):")
    for row in story.pods_conf.splitlines():
        line(f"             {row}", markup=False)
    for problem in report.problems:
        line(f"  [red]PROBLEM[/red]    {problem}")


def _span(story: Story, moment: float | None) -> str:
    return f"{moment - story.fault:.1f} s" if moment is not None and story.fault is not None else "never"
