"""One attempt is one pod id: what was asked, what is intended, and what the pod's starts have left behind."""

from __future__ import annotations

from typing import Annotated

from gpupod_operator.api.base import ApiModel, Text, at_most, newest
from gpupod_operator.api.money import Money
from gpupod_operator.api.phases import AttemptCause, AttemptIntent
from gpupod_operator.api.policies import Cloud
from gpupod_operator.api.times import Time


class AttemptCandidate(ApiModel):
    """The values of the candidate that was asked, so that a later edit of the list cannot change what they mean."""

    index: int | None = None
    gpu_type: str | None = None
    gpu_type_id: str | None = None
    count: int | None = None
    cloud: Cloud | None = None
    data_centers: tuple[str, ...] | None = None
    max_price_per_hour: Money | None = None


class Backoff(ApiModel):
    """Creates refused in a row, and when the next one is made."""

    failures: int | None = None
    until: Time | None = None


class Refusal(ApiModel):
    """One candidate's refusal in the present round. `failure` is the provider port's class of it."""

    index: int
    gpu_type: str | None = None
    failure: str | None = None
    detail: Text | None = None


class RefusedAct(ApiModel):
    """RunPod did not do what was ordered, and said so. `failure` is the provider port's class of it."""

    act: AttemptIntent | None = None
    failure: str | None = None
    detail: Text | None = None
    since: Time | None = None
    """The first of the same refusals in a row."""


class AttemptTimer(ApiModel):
    """The stop timer that the agent on the pod was told to hold, for one start of the pod."""

    started_at: Time | None = None
    """The pod's start that it is for."""
    deadline: Time | None = None
    """When the agent stops the pod by itself, unless something on it is unsaved."""
    armed: bool | None = None
    """The agent says that it holds the deadline and can act on it."""
    problem: Text | None = None
    """Why it cannot, or what it waits for, in its own words."""


class Attempt(ApiModel):
    """One attempt is one pod id. Written before the create call, so that a crash between the two loses nothing."""

    id: str | None = None
    nonce: str | None = None
    retired_nonces: Annotated[tuple[str, ...] | None, newest(10)] = None
    candidate: AttemptCandidate | None = None
    cause: AttemptCause | None = None
    reason: Text | None = None
    intent: AttemptIntent | None = None
    intent_time: Time | None = None
    pod_id: str | None = None
    created_at: Time | None = None
    """When the create was answered."""
    seen: bool | None = None
    """Whether any list or GET ever showed the pod."""
    taken_over: bool | None = None
    """Taken over by its stamp alone: no create of a recorded attempt made it."""
    ever_ready: bool | None = None
    generation: int | None = None
    """The generation of the spec that allowed the create."""
    spec_hash: str | None = None
    hash_version: int | None = None
    launched_start: Time | None = None
    """The pod's start for which the workload was launched."""
    launch_confirmed: bool | None = None
    """A launch was confirmed on this pod id, in any of its starts."""
    contacted: bool | None = None
    """Any SSH session ever reached this pod id."""
    restarted: bool | None = None
    """This pod id was stopped and started, or its container reset, since it was created."""
    start_requested_at: Time | None = None
    """When we last ordered the stopped pod to start."""
    agent_start: Time | None = None
    """The pod's start for which the agent was installed."""
    cells_digest: str | None = None
    """Of the agent's input as last written: which cells, from where, to where."""
    timer: AttemptTimer | None = None
    drained: bool | None = None
    """The workload was ended by a drain whose intent still stands."""
    resumed: bool | None = None
    """The resume annotation that names this pod was acted on: it starts the pod once."""
    logs: str | None = None
    """Name of the ConfigMap with this attempt's captured logs."""
    unknown_since: Time | None = None
    """When a create was answered ambiguously."""
    may_land_until: Time | None = None
    """Until then a create that was given up may still show a pod."""
    unlaunched_start: Time | None = None
    """The pod's start for which it was told that nothing was launched."""
    per_hour: Money | None = None
    """USD per hour while it runs: as listed before the create, then as billed. Kept while the pod is stopped."""
    accrued_before: Money | None = None
    """USD that earlier attempts had cost when the newest of them was proven gone."""
    refused: RefusedAct | None = None
    """The last order was refused; gone with the next one that is taken."""
    waiting_since: Time | None = None
    """First create of the present wait for capacity."""
    backoff: Backoff | None = None
    refusals: Annotated[tuple[Refusal, ...] | None, at_most(16)] = None
