"""A provider in memory: pods, what lists and GETs show of them, and answers that a test scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from gpupod_operator.core.provider import (
    Answer,
    CreateRequest,
    Failure,
    GpuOffer,
    Inventory,
    PatchRequest,
    PortMapping,
    ProviderPod,
    ProviderState,
)
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.inventory import absorb, doubted, failed, unlisted

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OFFERS = (
    GpuOffer("NVIDIA H100 80GB HBM3", "H100", 80, True, True, Decimal(2), Decimal("1.5")),
    GpuOffer("NVIDIA A100-SXM4-80GB", "A100", 80, True, True, Decimal("1.2"), Decimal(1)),
    GpuOffer("NVIDIA H200", "H200", 141, True, False, Decimal(3), None),
)


@dataclass
class Call:
    """One mutating call as the vendor received it."""

    verb: str
    pod_id: str
    at: datetime
    request: CreateRequest | PatchRequest | None = None


@dataclass
class Cloud:
    """`script` holds answers for the next creates (a Failure refuses; LATE makes a pod that nobody is told about)."""

    now: datetime = START
    pods: dict[str, ProviderPod] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    script: list[Failure | str] = field(default_factory=list)
    start_script: list[Failure] = field(default_factory=list)
    stop_script: list[Failure] = field(default_factory=list)
    patch_script: list[Failure] = field(default_factory=list)
    listing: str = "ok"
    """ok, unknown, suspect."""
    get: str = "ok"
    """ok, unknown, 404."""
    hidden: set[str] = field(default_factory=set)
    """Pods that lists lack and GETs answer 404 (young or lagging)."""
    unlisted: set[str] = field(default_factory=set)
    """Pods that lists lack while a GET shows them."""
    zombie: bool = False
    """DELETE answers well and has no effect."""
    undeletable: set[str] = field(default_factory=set)
    """The same, of these pods only."""
    make: Callable[[ProviderPod], ProviderPod] = lambda pod: pod
    restart: Callable[[ProviderPod], ProviderPod] = lambda pod: pod
    logs: tuple[str, ...] | None = ()
    inventory: Inventory = field(default_factory=lambda: unlisted(START))
    tracked: set[str] = field(default_factory=set)
    made: int = 0

    def sent(self, verb: str) -> list[Call]:
        return [c for c in self.calls if c.verb == verb]

    def billed(self) -> list[ProviderPod]:
        """Pods that exist and cost GPU money."""
        return [p for p in self.pods.values() if p.state not in (ProviderState.EXITED, ProviderState.TERMINATED)]

    def change(self, pod_id: str, **changes: Any) -> None:
        if pod_id in self.pods:
            self.pods[pod_id] = replace(self.pods[pod_id], **changes)

    def tick(self) -> Inventory:
        """One list call of the shared observer."""
        if self.listing == "unknown":
            error = ProviderError(Failure.UNAVAILABLE, "502")
            self.inventory, _ = failed(self.inventory, error, self.now)
        elif self.listing == "suspect":
            self.inventory, _ = doubted(self.inventory, "the list lost too much", self.now)
        else:
            shown = [p for p in self.pods.values() if p.id not in self.hidden and p.id not in self.unlisted]
            self.inventory, _ = absorb(self.inventory, shown, frozenset(self.tracked), self.now)
        return self.inventory

    def read(self, pod_id: str) -> ProviderPod | None:
        """A GET: None is a 404."""
        if self.get == "unknown":
            raise ProviderError(Failure.UNAVAILABLE, "502")
        if self.get == "404" or pod_id in self.hidden:
            return None
        return self.pods.get(pod_id)

    def create(self, request: CreateRequest) -> Answer:
        self.calls.append(Call("create", "", self.now, request))
        answer = self.script.pop(0) if self.script else "ok"
        if isinstance(answer, Failure) and answer is not Failure.AMBIGUOUS:
            return Answer(answer, f"{answer} says the vendor", retry_after=30.0 if answer == "Throttled" else None)
        if answer is Failure.AMBIGUOUS:
            return Answer(Failure.AMBIGUOUS, "500 and nothing was made")
        pod = self.add(request)
        if answer == "late":  # made, never answered, and not shown either until the test says so
            self.hidden.add(pod.id)
            return Answer(Failure.AMBIGUOUS, "timeout")
        if answer == "lost":  # made and never answered
            return Answer(Failure.AMBIGUOUS, "timeout")
        return Answer(pod=pod)

    def add(self, request: CreateRequest) -> ProviderPod:
        """A pod that came of a create: RUNNING and mapped, unless `make` says otherwise."""
        self.made += 1
        pod = ProviderPod(
            id=f"pod-{self.made}",
            name=request.name,
            state=ProviderState.RUNNING,
            raw_state="RUNNING",
            stamp=request.stamp,
            image=request.image,
            ports=request.ports,
            gpu_type_id=request.gpu_type_id,
            gpu_count=request.gpu_count,
            cost_per_hour=Decimal(2),
            data_center="US-1",
            placed=True,
            has_runtime=True,
            mappings=(PortMapping(22, 10000 + self.made, "1.2.3.4"),),
            container_disk_gb=request.disk_gb,
            persistent_gb=request.persistent_gb,
            network_volume_id=request.network_volume_id,
            created_at=self.now,
            started_at=self.now,
        )
        self.pods[pod.id] = pod = self.make(pod)
        return pod

    def delete(self, pod_id: str) -> Answer:
        self.calls.append(Call("delete", pod_id, self.now))
        if not self.zombie and pod_id not in self.undeletable:
            self.pods.pop(pod_id, None)
        return Answer()

    def stop(self, pod_id: str) -> Answer:
        self.calls.append(Call("stop", pod_id, self.now))
        if self.stop_script:
            return Answer(self.stop_script.pop(0), "no")
        self.exit(pod_id)
        return Answer(pod=self.pods.get(pod_id))

    def exit(self, pod_id: str) -> None:
        """The pod is stopped, by whomever."""
        self.change(
            pod_id,
            state=ProviderState.EXITED,
            raw_state="EXITED",
            mappings=(),
            has_runtime=False,
            cost_per_hour=Decimal(0),
        )

    def start(self, pod_id: str) -> Answer:
        self.calls.append(Call("start", pod_id, self.now))
        if self.start_script:
            return Answer(self.start_script.pop(0), "not enough free GPUs on the host machine")
        self.run(pod_id)
        return Answer(pod=self.pods.get(pod_id))

    def run(self, pod_id: str) -> None:
        """The pod is started, by whomever: a new port and a new start time."""
        self.made += 1
        mapping = (PortMapping(22, 20000 + self.made, "1.2.3.4"),)
        self.change(
            pod_id,
            state=ProviderState.RUNNING,
            raw_state="RUNNING",
            mappings=mapping,
            has_runtime=True,
            cost_per_hour=Decimal(2),
            started_at=self.now,
        )
        if pod_id in self.pods:
            self.pods[pod_id] = self.restart(self.pods[pod_id])

    def patch(self, pod_id: str, change: PatchRequest) -> Answer:
        self.calls.append(Call("patch", pod_id, self.now, change))
        if self.patch_script:
            return Answer(self.patch_script.pop(0), "no")
        if change.ports is not None:
            self.change(pod_id, ports=change.ports)
        return Answer(pod=self.pods.get(pod_id))

    def wedge(self, pod_id: str) -> None:
        """The host lost its public port; the API goes on saying RUNNING."""
        self.change(pod_id, mappings=())

    def later(self, delay: timedelta) -> datetime:
        return self.now + delay
