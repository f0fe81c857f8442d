"""`why NAME`: the phase, what stands in the way, what unblocks it, what it costs, and when we look again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import typer

from gpupod_operator.api.conditions import Condition, ConditionStatus, ConditionType
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.remedies import REMEDIES
from gpupod_operator.cli.plugin.kube import Kube
from gpupod_operator.cli.plugin.words import distance, dollars, total_now

FAULTS = frozenset({ConditionType.WEDGED, ConditionType.STALLED})
"""Conditions that are well when False."""
PROGRESS = frozenset({ConditionType.RECONCILING})
"""Neither well nor ill."""
QUIET = frozenset({Reason.NO_WORKLOAD, Reason.SUCCEEDED, Reason.NO_SSH_WANTED, Reason.PUBLISH_DISABLED})
"""Reasons for "not True" that are as the person asked."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("why")(why)


def why(context: typer.Context, name: str) -> None:
    """Why is this GpuPod as it is, what unblocks it, and what does it cost meanwhile?"""
    kube: Kube = context.obj
    found = kube.pod(name)
    status = GpuPodStatus.model_validate(found.get("status") or {})
    generation = int(found["metadata"].get("generation") or 1)
    typer.echo("\n".join(explain(name, generation, status, datetime.now(UTC))))


def explain(name: str, generation: int, status: GpuPodStatus, now: datetime) -> list[str]:
    """The lines. A status of an older generation says so: it answers another spec."""
    attempt = status.attempt
    lines = [f"{name}: {status.phase or 'not seen by an operator yet'}"]
    if status.phase is None:
        lines.append("  is the operator running? kubectl -n gpupod-system get deployment gpupod-operator")
        return lines
    if status.observed_generation != generation:
        lines.append(
            f"  (of generation {status.observed_generation}; your last change, {generation}, is not acted on yet)"
        )
    lines.append(f"  {status.message or ''}".rstrip())
    blocked = next((c for c in status.conditions if c.type == "Stalled" and c.status is ConditionStatus.TRUE), None)
    if blocked is not None:
        lines.append(f"blocked by  {blocked.reason}: {remedy(blocked.reason)}")
    lines.append(f"pod         {(attempt.pod_id if attempt is not None else None) or 'none'}")
    lines += [f"{label:<11} {text}" for label, text in _facts(status, now)]
    wrong = [c for c in status.conditions if not as_it_should_be(c)]
    if wrong:
        lines += ["", "not as it should be:"]
        for condition in wrong:
            lines.append(f"  {condition.type}={condition.status} {condition.reason}: {condition.message}")
            lines.append(f"    -> {remedy(condition.reason)}")
    return lines


def as_it_should_be(condition: Condition) -> bool:
    """Whether nobody needs to look at it."""
    if condition.type in PROGRESS or condition.reason in QUIET:
        return True
    wanted = ConditionStatus.FALSE if condition.type in FAULTS else ConditionStatus.TRUE
    return condition.status is wanted


def remedy(reason: str) -> str:
    """What a person can do; a reason of a newer operator is not in our table."""
    try:
        return REMEDIES[Reason(reason)]
    except ValueError:
        return "This plugin is older than the operator and does not know the reason; see docs/reasons.md."


def _facts(status: GpuPodStatus, now: datetime) -> Iterator[tuple[str, str]]:
    yield "costs", _costs(status, now)
    yield "next check", distance(status.next_check, now) if status.next_check is not None else "when something changes"
    if status.endpoint is not None and status.endpoint.address is not None:
        yield "endpoint", status.endpoint.address
    if status.cells is not None and status.cells.declared:
        yield "cells", f"{status.cells.verified or 0} of {status.cells.declared} verified"
    episode = status.episode
    if episode is not None and episode.kind is not None:
        yield (
            "fault",
            f"{episode.kind}, first seen {distance(episode.first_seen, now)}, {episode.observations or 0} times",
        )
    migration = status.migration
    if migration is not None and migration.step is not None:
        yield "migration", f"{migration.step} off pod {migration.from_ or '?'} ({migration.reason or 'no reason'})"
    if status.workload is not None and status.workload.state is not None:
        yield "workload", " ".join(_workload(status))
    if status.diagnosis is not None and status.diagnosis.until is not None:
        yield "diagnosis", f"stays up until {status.diagnosis.until:%Y-%m-%dT%H:%M:%SZ}"


def _workload(status: GpuPodStatus) -> Sequence[str]:
    workload = status.workload
    assert workload is not None
    words = [str(workload.state)]
    if workload.exit_code is not None:
        words.append(f"(exit code {workload.exit_code})")
    if workload.last_error:
        words.append(workload.last_error)
    return words


def _costs(status: GpuPodStatus, now: datetime) -> str:
    cost = status.cost
    if cost is None:
        return "nothing so far"
    text = f"{dollars(cost.per_hour)}/h now, {dollars(total_now(cost, now))} in all attempts"
    return text if cost.max_burn is None else f"{text}, at most {dollars(cost.max_burn)} if nobody looks again"
