"""`receipts NAME`: what permitted the last act that could lose data, and what became of the earlier pods."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from gpupod_operator.api.gpupod_status import GpuPodStatus, HistoryEntry, Receipt
from gpupod_operator.api.times import format_time
from gpupod_operator.cli.plugin.kube import Kube
from gpupod_operator.cli.plugin.screen import show_table
from gpupod_operator.cli.plugin.words import dollars


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("receipts")(receipts)


def receipts(context: typer.Context, name: str) -> None:
    """The last receipt of the gate, and the history of pods."""
    kube: Kube = context.obj
    status = GpuPodStatus.model_validate(kube.pod(name).get("status") or {})
    if status.receipt is None:
        typer.echo("no receipt: nothing that could lose data was done")
    else:
        typer.echo("\n".join(describe(status.receipt)))
    if status.history:
        typer.echo("")
        show_table(("POD", "FROM", "UNTIL", "REASON", "COST SO FAR", "LOGS"), (_row(entry) for entry in status.history))


def describe(receipt: Receipt) -> list[str]:
    """One line for each fact."""
    facts = [
        ("act", f"{receipt.reason or '?'} of pod {receipt.pod_id or '?'}"),
        ("at", format_time(receipt.at) if receipt.at is not None else "?"),
        ("verified", f"{receipt.verified or 0} cells on the Hub"),
        ("re-run", _names(receipt.rerun)),
        ("discarded", _names(receipt.discarded)),
        ("policy", receipt.policy or "?"),
        ("approved", receipt.approved_by or "by policy alone"),
        ("digest", f"sha256:{receipt.digest}" if receipt.digest else "?"),
    ]
    return [f"{label:<10} {text}" for label, text in facts]


def _names(names: Sequence[str] | None) -> str:
    return ", ".join(names) if names else "none"


def _row(entry: HistoryEntry) -> tuple[str, ...]:
    return (
        entry.pod_id or "?",
        format_time(entry.from_) if entry.from_ is not None else "-",
        format_time(entry.until) if entry.until is not None else "-",
        entry.reason or "-",
        dollars(entry.cost),
        entry.logs or "-",
    )
