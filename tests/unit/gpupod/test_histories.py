"""Random histories of provider, person and process: what must hold after every step, and how every deletion ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gatekit.cells import agent_cell
from gpupod_operator.core.plan import CreatePod, DeletePod, PatchPod, Plan, StartPod, StopPod
from gpupod_operator.core.provider import Failure, InventoryState, PortMapping, ProviderPod, ProviderState
from gpupod_operator.core.shell import SshClass
from podkit.driver import UID, Crashed, Driver, spec_of

CREATES = [Failure.AMBIGUOUS, "late", "lost", Failure.NO_CAPACITY, Failure.THROTTLED, Failure.INVALID]


class WatchedDriver(Driver):
    """Holds every act to the laws at the moment when it is sent. `on_record` are the pods it ever held for its own."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.on_record: set[str] = set()

    def _commit(self, after: Any) -> None:
        super()._commit(after)
        if self.pod_id is not None:
            self.on_record.add(self.pod_id)

    def _perform(self, plan: Plan) -> Any:
        action, status = plan.action, self.status
        if isinstance(action, (CreatePod, DeletePod, StopPod, StartPod, PatchPod)):
            assert not self.spec.paused
            assert self.cloud.inventory.state is InventoryState.COMPLETE
        if isinstance(action, (CreatePod, StartPod)):
            assert self.spec.spend.allow_paid
            assert not self.deleting
            assert self.spec.state == "Running"
        if isinstance(action, CreatePod):
            assert status.attempt.intent == "Create"
            assert status.attempt.nonce == action.request.stamp.nonce
            assert status.attempt.pod_id is None
            assert self.on_record & self.cloud.pods.keys() == set()
        if isinstance(action, DeletePod) and action.ghost:
            ghost = self.cloud.pods.get(action.pod.id)
            assert action.pod.id != self.pod_id
            assert ghost is None or ghost.stamp.nonce in known_nonces(self)
        elif isinstance(action, (DeletePod, StopPod, PatchPod)):
            receipt = status.receipt
            assert receipt is not None
            assert (receipt.pod_id, receipt.at) == (action.pod.id, self.now)
            assert action.pod.id == self.pod_id
            assert receipt.reason == "Undo" or not self.spec.keep_running
            if self.spec.remediation.artifacts == "RequireVerified" and receipt.reason != "Undo":
                assert finished_and_at_stake(self) == []
        return super()._perform(plan)


def known_nonces(d: Driver) -> set[str]:
    attempt = d.status.attempt
    if attempt is None:
        return set()
    return {*(attempt.retired_nonces or ()), *((attempt.nonce,) if attempt.nonce else ())}


def finished_and_at_stake(d: Driver) -> list[str]:
    """Cells whose only copy is on the recorded pod; a pod that is not running has lost its container disk already."""
    pod = d.cloud.pods.get(d.pod_id)
    if pod is None or pod.state in (ProviderState.EXITED, ProviderState.TERMINATED):
        return []
    cells = d.host().cells.values()
    given_up = d.annotations.get("gpupod.dev/abandon-data", "").startswith(f"{d.pod_id}:")
    return [] if given_up else [c.uid for c in cells if c.done_seen and c.uid not in d.hub]


def ours(d: Driver) -> list[ProviderPod]:
    return [p for p in d.cloud.pods.values() if p.stamp is not None and p.stamp.uid == UID]


def event(**what: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A rule after which some time goes on, so that what it did has consequences."""

    def made(happen: Callable[..., None]) -> Callable[..., None]:
        def step(self, ticks: int, **chosen: Any) -> None:
            happen(self, **chosen)
            self.later(ticks)

        step.__name__ = happen.__name__
        return rule(ticks=st.sampled_from([0, 1, 2, 5]), **what)(step)

    return made


class Histories(RuleBasedStateMachine):
    """One object, one account, and everything that can happen to both."""

    @initialize(
        artifacts=st.sampled_from(["Disposable", "RequireVerified"]),
        action=st.sampled_from(["Migrate", "Stop", "Report"]),
        work=st.booleans(),
        cap=st.booleans(),
        policy=st.sampled_from(["Terminate", "Terminate", "Stop"]),
        up=st.sampled_from([True, True, False]),
    )
    def begin(self, artifacts, action, work, cap, policy, up):
        self.d = WatchedDriver(
            spec_of(
                placement={"candidates": [{"gpuType": "H100"}, {"gpuType": "A100"}]},
                remediation={"artifacts": artifacts, "action": action, "maxMigrations": 5},
                workload={"command": ["run"]} if work else {},
                spend={"maxPricePerHour": "2.5"} if cap else {},
                deletionPolicy=policy,
            )
        )
        self.d.cloud.tick()
        if up:
            self.later(4)

    def _pass(self) -> None:
        if self.d.released:
            return
        try:
            self.d.settle()
        except Crashed:
            self.d.settle()

    def later(self, ticks: int, tick: timedelta = timedelta(seconds=15)) -> None:
        for _ in range(ticks):
            self.d.cloud.now += tick
            self.d.cloud.tick()
            self._pass()

    @rule(minutes=st.sampled_from([2, 17, 20]))
    def much_time_goes_on(self, minutes):
        self.later(minutes, timedelta(minutes=1))

    @event()
    def woken_without_news(self):
        self._pass()

    @event(when=st.sampled_from(["intent", "answer"]))
    def the_process_will_die(self, when):
        self.d.crash = when

    @event()
    def the_process_restarts(self):
        self.d.restart()

    @precondition(lambda self: self.d.cloud.made + len(self.d.cloud.script) < 8)  # more open nonces than are kept
    @event(answer=st.sampled_from(CREATES))
    def the_next_create_goes_wrong(self, answer):
        self.d.cloud.script.append(answer)

    @event(failure=st.sampled_from([Failure.HOST_FULL, Failure.THROTTLED, Failure.AMBIGUOUS]))
    def the_next_start_goes_wrong(self, failure):
        self.d.cloud.start_script.append(failure)

    @event(listing=st.sampled_from(["ok", "ok", "unknown", "suspect"]), get=st.sampled_from(["ok", "ok", "unknown"]))
    def observation(self, listing, get):
        self.d.cloud.listing, self.d.cloud.get = listing, get

    @event()
    def hidden_pods_appear(self):
        self.d.cloud.hidden.clear()

    @event(change=st.sampled_from(["price", "count", "zero", "none"]))
    def the_vendor_gives_something_else(self, change):
        changes = {"price": {"cost_per_hour": Decimal(9)}, "count": {"gpu_count": 3}, "zero": {"gpu_count": 0}}
        self.d.cloud.make = lambda p: replace(p, **changes.get(change, {}))
        self.d.cloud.restart = lambda p: replace(p, gpu_count=0 if change == "zero" else 1)

    @precondition(lambda self: self.d.pod_id in self.d.cloud.pods)
    @event(what=st.sampled_from(["exit", "gone", "wedge", "map", "error", "terminated", "run", "ports"]))
    def something_happens_to_the_pod(self, what):
        cloud, pod_id = self.d.cloud, self.d.pod_id
        if what == "exit":
            cloud.exit(pod_id)
        elif what == "gone":
            del cloud.pods[pod_id]
        elif what == "wedge":
            cloud.wedge(pod_id)
        elif what == "map":
            cloud.change(pod_id, mappings=(PortMapping(22, 31000, "9.9.9.9"),))
        elif what == "ports":
            cloud.change(pod_id, ports=("8888/http",), mappings=())
        elif what == "run":
            self.d.host().restart()
            cloud.run(pod_id)
        else:
            state = ProviderState.ERROR if what == "error" else ProviderState.TERMINATED
            cloud.change(pod_id, state=state, raw_state=str(state), mappings=())

    @precondition(lambda self: self.d.pod_id is not None)
    @event(ssh=st.sampled_from([SshClass.OK, SshClass.TIMEOUT, SshClass.REFUSED, SshClass.AUTH_DENIED]))
    def the_host_answers(self, ssh):
        self.d.host().ssh = ssh

    @precondition(lambda self: self.d.pod_id is not None)
    @event(code=st.sampled_from([0, 1, None]))
    def the_workload_ends(self, code):
        self.d.host().end(code)

    @precondition(lambda self: self.d.pod_id is not None and self.d.status.workload is not None)
    @event(uid=st.sampled_from(["c1", "c2"]), state=st.sampled_from(["Pending", "Producing", "Produced", "Failed"]))
    def the_workload_produces(self, uid, state):
        done = state in ("Produced", "Failed")
        self.d.declare(uid, state=state, done=done)
        self.d.host().cells[uid] = agent_cell(uid, state, done_seen=done)

    @precondition(lambda self: self.d.cells)
    @event()
    def a_cell_is_deleted(self):
        self.d.cells.popitem()  # as abandoned: the finalizer of a cell with data goes only then
        for host in self.d.hosts.values():
            host.cells = {uid: cell for uid, cell in host.cells.items() if uid in self.d.cells}

    @event(state=st.sampled_from(["Running", "Stopped"]), paid=st.booleans(), kept=st.booleans(), paused=st.booleans())
    def a_person_edits(self, state, paid, kept, paused):
        self.d.edit(state=state, spend={"allow_paid": paid}, keep_running=kept and paid, paused=paused and kept)

    @precondition(lambda self: self.d.pod_id is not None)
    @event(lags=st.booleans())
    def lists_lag(self, lags):
        self.d.cloud.unlisted = {self.d.pod_id} if lags else set()

    @precondition(lambda self: self.d.pod_id is not None)
    @event(name=st.sampled_from(["migrate", "resume"]))
    def a_person_annotates(self, name):
        self.d.annotations[f"gpupod.dev/{name}"] = self.d.pod_id

    @invariant()
    def at_most_one_pod_that_is_no_known_ghost(self):
        if not hasattr(self, "d"):
            return
        strange = [p.id for p in ours(self.d) if p.id != self.d.pod_id and p.stamp.nonce not in known_nonces(self.d)]
        assert strange == []

    def _give_up(self) -> bool:
        """Another pod may have been taken over meanwhile: the person gives up that one's data, too."""
        if self.d.pod_id is not None:
            self.d.annotations["gpupod.dev/abandon-data"] = f"{self.d.pod_id}: the test is over"
        return False

    def teardown(self):
        if not hasattr(self, "d"):
            return
        d = self.d
        d.crash = None
        d.edit(paused=False, keep_running=False, deletion_policy="Terminate")
        d.deleting = True
        self.later(8)
        assert not d.released or d.on_record & d.cloud.pods.keys() == set()
        d.cloud.listing = d.cloud.get = "ok"
        d.cloud.unlisted.clear()
        d.cloud.hidden.clear()
        d.cloud.script.clear()
        for host in d.hosts.values():
            host.ssh = SshClass.OK
        if d.pod_id is not None:
            d.annotations["gpupod.dev/abandon-data"] = f"{d.pod_id}: the test is over"
        d.cloud.tick()
        for pod in ours(d):
            if pod.state is ProviderState.TERMINATED:
                del d.cloud.pods[pod.id]
        d.run(until=lambda: d.released or self._give_up(), limit=timedelta(hours=1))
        assert ours(d) == []


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=150,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
