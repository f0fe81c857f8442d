"""Nothing ticks: in an unchanged world a pass writes and does nothing, wherever an object can rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from gpupod_operator.api.base import dump
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.core.provider import AccountIdentity, CreateRequest, Failure, ProviderState, Stamp
from gpupod_operator.core.shell import SshClass
from podkit.driver import INSTANCE, UID, Driver, spec_of

WORK = {"command": ["run"]}
MANUAL = {"artifacts": "Disposable", "approval": "Manual"}


def ready(**changes) -> Driver:
    d = Driver(spec_of(**changes))
    d.run(until=lambda: d.status.phase == "Ready")
    d.run(limit=timedelta(minutes=1))
    return d


def unreachable(ssh: SshClass = SshClass.TIMEOUT, *, wedge: bool = True, **changes) -> Driver:
    d = ready(**changes)
    d.host().ssh = ssh
    if wedge:
        d.cloud.wedge("pod-1")
    return d


def wanting(script: list, **changes) -> Driver:
    d = Driver(spec_of(**changes))
    d.cloud.script = script
    return d


def stopped() -> Driver:
    d = ready(volume={"persistent": {"sizeGb": 100}})
    d.edit(state="Stopped")
    return d


def stopped_without_money(**spend) -> Driver:
    d = stopped()
    d.run(until=lambda: d.status.phase == "Stopped")
    d.edit(state="Running", spend=spend)
    return d


def outside(verb: str, **changes) -> Driver:
    d = ready(workload=WORK, **changes)
    if verb == "exit":
        d.cloud.exit("pod-1")
    elif verb == "gone":
        del d.cloud.pods["pod-1"]
    else:
        d.cloud.change("pod-1", state=ProviderState(verb), raw_state=verb)
    return d


def listing(kind: str) -> Driver:
    d = ready(workload=WORK)
    d.cloud.listing = kind
    return d


def account(fact) -> Driver:
    d = ready()
    d.account = fact
    return d


def strange() -> Driver:
    d = ready()
    stamp = Stamp(f"{INSTANCE}/ml/sweep/{UID}", "n9")
    d.cloud.add(CreateRequest("p", "img", "NVIDIA H100 80GB HBM3", 1, "SECURE", (), 50, ("22/tcp",), stamp))
    return d


def booting(*logs: str) -> Driver:
    d = Driver()
    d.cloud.logs = logs
    d.cloud.make = lambda p: replace(p, state=ProviderState.PROVISIONING, raw_state="PROVISIONING", mappings=())
    return d


def failed(code: int | None) -> Driver:
    d = ready(workload=WORK, diagnosis={"ttl": "24h"})
    d.host().end(code)
    return d


def refused() -> Driver:
    d = Driver(spec_of(workload=WORK, diagnosis={"ttl": "24h"}))
    d.host("pod-1").refuses = "exit code 1"
    return d


def deleting(**changes) -> Driver:
    d = ready(workload=WORK, **changes)
    d.deleting = True
    return d


def paused(d: Driver) -> Driver:
    d.edit(paused=True)
    return d


def with_cells(**changes) -> Driver:
    d = Driver(spec_of(workload=WORK, **changes))
    d.declare("c1", state="Pending")
    return d


def blocked_by_a_cell() -> Driver:
    d = with_cells(remediation={"inFlight": "Block"})
    d.run(until=lambda: d.status.phase == "Ready")
    d.run(limit=timedelta(minutes=1))
    d.declare("c1", state="Producing", done=False)
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-1")
    return d


STATES: dict[str, Callable[[], Driver]] = {
    "ready": ready,
    "ready with a workload": lambda: ready(workload=WORK),
    "ready with cells": with_cells,
    "ready without ssh": lambda: ready(container={"ports": ["8888/http"]}),
    "ready at mapping": lambda: ready(health={"readiness": "Mapping"}),
    "paid creates are off": lambda: Driver(spec_of(spend={"allowPaid": False})),
    "a typo": lambda: Driver(spec_of(placement={"candidates": [{"gpuType": "HH"}]})),
    "over the cap": lambda: Driver(spec_of(spend={"maxPricePerHour": "1"})),
    "no capacity any more": lambda: wanting([Failure.NO_CAPACITY] * 99, placement={"capacityWait": "10m"}),
    "an invalid request": lambda: wanting([Failure.INVALID] * 99),
    "stopped by state": stopped,
    "stopped, start not allowed": lambda: stopped_without_money(allow_paid=False),
    "stopped, money used up": lambda: stopped_without_money(max_total=Decimal("0.0001")),
    "stopped outside": lambda: outside("exit"),
    "terminated outside, report": lambda: outside("gone", remediation={"action": "Report"}),
    "an unknown provider status": lambda: outside("UNKNOWN"),
    "in error, held": lambda: outside("ERROR", remediation=MANUAL),
    "listed as terminated": lambda: outside("TERMINATED"),
    "wedged, report": lambda: unreachable(remediation={"action": "Report"}),
    "wedged, manual": lambda: unreachable(remediation=MANUAL),
    "wedged, no cells": lambda: unreachable(workload=WORK),
    "wedged, no budget": lambda: unreachable(remediation={"artifacts": "Disposable", "maxMigrations": 0}),
    "wedged, kept": lambda: unreachable(keepRunning=True, remediation={"artifacts": "Disposable"}),
    "wedged, paused": lambda: paused(unreachable(remediation=MANUAL)),
    "wedged, a cell in the way": blocked_by_a_cell,
    "unresponsive, manual": lambda: unreachable(wedge=False, remediation=MANUAL),
    "misreported": lambda: unreachable(SshClass.OK),
    "denied": lambda: unreachable(SshClass.AUTH_DENIED, wedge=False),
    "refused": lambda: unreachable(SshClass.REFUSED, wedge=False, workload=WORK),
    "another host key": lambda: unreachable(SshClass.HOST_KEY, wedge=False),
    "no such name": lambda: unreachable(SshClass.NAME_RESOLUTION, wedge=False),
    "an image error": lambda: booting("failed to pull image img"),
    "paused": lambda: Driver(spec_of(paused=True)),
    "no list": lambda: listing("unknown"),
    "a suspect list": lambda: listing("suspect"),
    "another account": lambda: account(Known(AccountIdentity("other", "x", verified=True))),
    "a broken key": lambda: account(Unknown("401: RunPod refuses the key")),
    "two pods": strange,
    "no such pod to adopt": lambda: Driver(spec_of(adopt={"podId": "nope"})),
    "a failed workload": lambda: failed(1),
    "a workload that died": lambda: failed(None),
    "a refused launch": refused,
    "a workload that succeeded": lambda: failed(0),
    "deleting, kept": lambda: deleting(keepRunning=True),
    "deleting, paused": lambda: paused(deleting()),
}


@pytest.mark.parametrize("state", STATES)
def test_an_object_at_rest_writes_nothing_and_does_nothing(state):
    d = STATES[state]()
    d.cloud.tick()
    d.run(limit=timedelta(minutes=65))  # past `spend.unlaunchedAfter`, which is told once
    before, writes, calls = dump(d.status), d.writes, len(d.cloud.calls)
    acts = {pod_id: list(host.acts) for pod_id, host in d.hosts.items()}
    d.run(limit=timedelta(minutes=20))
    assert dump(d.status) == before
    assert d.writes == writes
    assert len(d.cloud.calls) == calls
    assert {pod_id: list(host.acts) for pod_id, host in d.hosts.items()} == acts


@pytest.mark.parametrize("state", STATES)
def test_an_object_at_rest_reads_the_same_after_a_restart(state):
    d = STATES[state]()
    d.cloud.tick()
    d.run(limit=timedelta(minutes=65))  # past `spend.unlaunchedAfter`, which is told once
    before, calls = dump(d.status), len(d.cloud.calls)
    d.restart()
    d.run(limit=timedelta(minutes=5))
    assert dump(d.status) == before
    assert len(d.cloud.calls) == calls
