"""Small pure views of committed objects, as the runtime needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.policies import TokenFrom
from gpupod_operator.api.sweepcell import SweepCellSpec
from gpupod_operator.core.artifacts import AgentReading, HubDestination
from gpupod_operator.core.gpupod.agent import cells_digest
from gpupod_operator.core.gpupod.scope import Facts
from gpupod_operator.core.known import Fact, Known
from gpupod_operator.core.shell import ShellTarget

COMMITS = 1000
"""Commits looked through for a cell's trailer: ten hours of a repository at its limit of about 100 commits an hour."""


def agent_of(facts: Facts, status: GpuPodStatus) -> AgentReading | None:
    """The agent of this pass's visit, if its state file is of the recorded pod (a volume may carry another's)."""
    agent = facts.shell.agent if facts.visited_now and facts.shell is not None else None
    recorded = status.attempt.pod_id if status.attempt is not None else None
    return agent if agent is not None and agent.pod_id == recorded else None


def digest_of(cells: Iterable[Mapping[str, Any]], print_of: Callable[[str], str | None]) -> Fact[str] | None:
    """Of the agent's input, from committed cells; None while the token of one was never read by this process."""
    parts = []
    for raw in cells:
        metadata = raw["metadata"]
        seen = print_of(metadata["uid"]) if token_source(raw) == TokenFrom.SECRET else ""
        if seen is None:
            return None
        # the API server counts the wish to delete as a generation of its own; the orders are the same
        generation = metadata.get("generation", 1) - bool(metadata.get("deletionTimestamp"))
        parts.append((metadata["uid"], generation, seen))
    return Known(cells_digest(parts))


def token_source(raw: Mapping[str, Any]) -> str:
    """`spec.upload.tokenFrom` of a committed cell, without parsing all of it."""
    upload = (raw.get("spec") or {}).get("upload") or {}
    return str(upload.get("tokenFrom") or TokenFrom.SECRET)


def target_of(status: GpuPodStatus, spec: GpuPodSpec) -> ShellTarget | None:
    """Where to log in: the recorded endpoint, overridden as pods.conf is."""
    attempt, endpoint = status.attempt, status.endpoint
    if attempt is None or attempt.pod_id is None:
        return None
    host = endpoint.host if endpoint is not None else None
    port = endpoint.port if endpoint is not None else None
    override = spec.pods_conf.endpoint_override
    if override is not None and override.pod_id in (None, attempt.pod_id):
        host, port = override.host or host, override.port or port
    if host is None or port is None:
        return None
    return ShellTarget(attempt.pod_id, host, port, endpoint.host_key if endpoint is not None else None)


def hub_destination(spec: SweepCellSpec) -> HubDestination:
    """The cell's destination as the Hub port takes it."""
    where = spec.destination
    return HubDestination(where.repo, str(where.type), where.revision, where.path.strip("/"))


def abandon_reason(value: str | None, pod_id: str | None) -> str | None:
    """The reason text of `"<pod id>: <reason>"` if it names exactly this pod."""
    named, _, reason = (value or "").partition(":")
    return reason.strip() if pod_id is not None and named.strip() == pod_id and reason.strip() else None
