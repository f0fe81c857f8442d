"""What a visit over SSH shows: launches, the agent and its cells, of each pod and start."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from gpupod_operator.core.artifacts import AgentCell, AgentReading, AgentTimer
from gpupod_operator.core.plan import DrainWorkload, InstallAgent, LaunchWorkload, Outcome
from gpupod_operator.core.shell import LaunchRecord, ShellReading, ShellTarget, SshClass

TREE = "tree-1"


@dataclass
class Host:
    """The inside of one pod. `ssh` is how a visit ends; `refuses` makes the next launch's check fail."""

    ssh: SshClass = SshClass.OK
    message: str = "no answer"
    launches: list[LaunchRecord] = field(default_factory=list)
    agent_running: bool = False
    agent_starts: bool = True
    agent_problem: str | None = None
    attempt: str | None = None
    cells: dict[str, AgentCell] = field(default_factory=dict)
    install_fails: str | None = None
    refuses: str | None = None
    lost_answer: bool = False
    key: str = "ssh-ed25519 AAAA"
    acts: list[str] = field(default_factory=list)
    timer: datetime | None = None
    timer_says: tuple[str, str | None] = ("Armed", None)

    def read(self, target: ShellTarget, now: datetime) -> ShellReading:
        if self.ssh is not SshClass.OK:
            return ShellReading(self.ssh, self.message, now, tcp_open=self.ssh is not SshClass.TIMEOUT)
        if target.host_key is not None and target.host_key != self.key:
            return ShellReading(SshClass.HOST_KEY, "another key", now, tcp_open=True)
        agent = AgentReading(
            running=self.agent_running,
            tree_hash=TREE if self.attempt is not None else None,
            attempt=self.attempt,
            pod_id=target.pod_id if self.attempt is not None else None,
            heartbeat=now,
            cells=dict(self.cells),
            problem=self.agent_problem,
            timer=AgentTimer(self.timer, *self.timer_says) if self.timer is not None else None,
        )
        return ShellReading(
            SshClass.OK, "", now, host_key=self.key, tcp_open=True, launches=tuple(self.launches), agent=agent
        )

    def restart(self) -> None:
        """Everything that ran has ended; the container disk is fresh."""
        self.launches.clear()
        self.cells.clear()
        self.agent_running = False
        self.attempt = self.timer = None

    def install(self, action: InstallAgent, cells: dict[str, AgentCell]) -> Outcome:
        self.acts.append("install")
        if self.ssh is not SshClass.OK:
            return Outcome(None, "lost")
        if self.install_fails is not None:
            return Outcome(None, self.install_fails)
        self.attempt, self.agent_running = action.attempt, self.agent_starts
        self.timer = action.timer
        for uid, cell in cells.items():
            self.cells.setdefault(uid, cell)
        return Outcome(True)

    def launch(self, action: LaunchWorkload) -> Outcome:
        self.acts.append("launch")
        if self.ssh is not SshClass.OK:
            return Outcome(None, "lost")
        if self.refuses is not None:
            return Outcome(False, self.refuses)
        if not any(r.alive for r in self.launches):
            self.launches.append(LaunchRecord(action.launch_id, action.attempt, 7, True, None))
        return Outcome(None, "lost") if self.lost_answer else Outcome(True)

    def end(self, code: int | None) -> None:
        """The workload's process is gone."""
        self.launches[:] = [
            LaunchRecord(r.launch_id, r.attempt, r.pid, False, r.exit_code if not r.alive else code)
            for r in self.launches
        ]

    def drain(self, action: DrainWorkload) -> Outcome:
        self.acts.append("drain")
        if self.ssh is not SshClass.OK:
            return Outcome(None, "lost")
        self.end(143)
        return Outcome(True)
