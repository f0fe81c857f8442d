"""What visits showed of cells, handed from the pod's loop to the cells' loops."""

from __future__ import annotations

from collections.abc import Callable

from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.core.artifacts import AgentCell
from gpupod_operator.core.shell import ShellReading, SshClass
from gpupod_operator.core.sweepcell.scope import AgentView
from gpupod_operator.runtime.slot import Slot
from gpupod_operator.runtime.store import Key


class Readings:
    """The newest healthy visit by GpuPod. `changed` is called with the uids of cells that read differently."""

    def __init__(self, changed: Callable[[set[str]], None]) -> None:
        self._changed = changed
        self._by_pod: dict[Key, tuple[GpuPodStatus, ShellReading]] = {}

    def publish(self, slot: Slot, status: GpuPodStatus, reading: ShellReading) -> None:
        """Keep a healthy reading and wake the cells that changed in it; any other reading says nothing."""
        if reading.ssh is not SshClass.OK or reading.agent is None:
            return
        before = self._by_pod.get(slot.key)
        self._by_pod[slot.key] = (status, reading)
        old = before[1].agent.cells if before is not None and before[1].agent is not None else {}
        new = reading.agent.cells
        moved = before is None or before[1].agent is None or before[1].agent.problem != reading.agent.problem
        differing = {uid for uid in {*old, *new} if moved or old.get(uid) != new.get(uid)}
        if differing:
            self._changed(differing)

    def view(self, pod: Key, uid: str) -> AgentView | None:
        """The cell as last read, None before any healthy visit of this process."""
        held = self._by_pod.get(pod)
        if held is None or held[1].agent is None:
            return None
        status, reading = held
        agent = reading.agent
        assert agent is not None
        # a network volume may carry the state file of an older pod: only its own word says whose it is
        if agent.pod_id is None:
            return None
        cell: AgentCell | None = agent.cells.get(uid)
        same = status.pod is not None and status.pod.id == agent.pod_id
        return AgentView(
            pod_id=agent.pod_id,
            pod_started_at=status.pod.started_at if same and status.pod is not None else None,
            attempt=agent.attempt,
            read_at=reading.at,
            running=agent.running,
            cell=cell,
            problem=agent.problem,
        )

    def forget(self, pod: Key) -> None:
        self._by_pod.pop(pod, None)
