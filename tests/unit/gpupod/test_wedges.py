"""The wedge clock: when it starts, what it needs before it counts, and what ends it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.provider import PortMapping
from gpupod_operator.core.shell import SshClass
from podkit.driver import Driver, spec_of

DISPOSABLE = {"artifacts": "Disposable"}


def ready(**changes) -> Driver:
    d = Driver(spec_of(**{"remediation": DISPOSABLE, **changes}))
    d.run(until=lambda: d.status.phase == "Ready")
    d.run(limit=timedelta(minutes=1))
    return d


@pytest.mark.parametrize("ssh", [SshClass.OK, SshClass.TIMEOUT])
def test_one_sample_without_a_runtime_is_nothing_and_the_row_stays(ssh):
    d = ready()
    d.host().ssh = ssh
    before, shown = d.status, dict(d.cloud.pods)
    d.cloud.change("pod-1", mappings=(), has_runtime=False)
    d.cloud.now += timedelta(seconds=15)
    d.cloud.tick()
    d.settle()
    assert d.status.phase == "Ready"
    assert d.status.endpoint == before.endpoint
    assert [t.reason for t in d.plans[-1].transitions] == []
    assert d.condition("Reachable") == ("True", Reason.REACHABLE)
    d.cloud.pods.update(shown)
    d.host().ssh = SshClass.OK
    d.run(limit=timedelta(minutes=1))
    assert d.status.episode is None
    assert d.condition("Reachable") == ("True", Reason.REACHABLE)
    assert d.status.message == before.message


def test_a_lost_port_is_a_wedge_after_the_clock_and_not_before():
    d = ready()
    lost = d.now
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-1")
    d.run(limit=timedelta(minutes=15))
    assert d.cloud.sent("delete") == []
    assert d.condition("Reachable") == ("False", Reason.PORT_LOST)
    d.run(until=lambda: d.pod_id == "pod-2" and d.status.phase == "Ready", limit=timedelta(minutes=10))
    assert d.cloud.sent("delete")[0].at - lost > timedelta(minutes=15)
    assert d.status.receipt.pod_id == "pod-1"
    assert d.status.receipt.reason == "Migrate"


def test_the_same_list_is_not_counted_twice():
    d = ready()
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-1")
    d.cloud.tick()
    for _ in range(20):
        d.step()
    assert d.status.episode.observations == 1
    d.cloud.now += timedelta(minutes=30)
    d.step()
    assert d.cloud.sent("delete") == []
    assert d.condition("Wedged")[0] == "False"


def test_a_clock_that_is_old_needs_its_confirmations_too():
    d = ready(health={"confirmations": 10, "wedgeAfter": "13m"})
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-1")
    for _ in range(9):
        d.cloud.now += timedelta(minutes=3)
        d.cloud.tick()
        d.settle()
    assert d.cloud.sent("delete") == []
    d.cloud.now += timedelta(minutes=3)
    d.cloud.tick()
    d.settle()
    d.run(until=lambda: d.cloud.sent("delete") != [], limit=timedelta(minutes=1))


def test_exactly_the_age_of_the_limit_is_no_wedge():
    d = ready()
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-1")
    d.cloud.tick()
    d.settle()
    first = d.status.episode.first_seen
    while d.now < first + timedelta(minutes=15):
        d.cloud.now = min(d.now + timedelta(seconds=15), first + timedelta(minutes=15))
        d.cloud.tick()
        d.settle()
    assert d.now - first == timedelta(minutes=15)
    assert d.condition("Wedged")[0] != "True"


def test_recovery_before_the_delete_stops_a_migration():
    d = ready(remediation={"approval": "Manual", "artifacts": "Disposable"})
    d.host().ssh = SshClass.TIMEOUT
    shown = dict(d.cloud.pods)
    d.cloud.wedge("pod-1")
    d.run(limit=timedelta(minutes=30))
    assert d.condition("Wedged")[0] == "True"
    assert d.status.migration.step == "Gate"
    d.cloud.pods.update(shown)
    d.host().ssh = SshClass.OK
    d.run(limit=timedelta(minutes=5))
    assert d.status.phase == "Ready"
    assert d.status.migration.step is None
    assert d.cloud.sent("delete") == []


def test_recovery_that_only_the_gates_own_get_shows_stops_the_delete():
    d = ready()
    d.host().ssh = SshClass.TIMEOUT
    shown = d.cloud.pods["pod-1"]
    d.cloud.wedge("pod-1")
    d.run(limit=timedelta(minutes=15))
    d.cloud.pods["pod-1"] = shown
    d.host().ssh = SshClass.OK
    d.run(limit=timedelta(minutes=5), tick=False)
    assert d.cloud.sent("delete") == []
    assert d.pod_id == "pod-1"


def test_a_misreport_keeps_the_pod_ready_for_ever():
    d = ready()
    d.cloud.wedge("pod-1")
    d.run(limit=timedelta(hours=2))
    assert d.cloud.sent("delete") == []
    assert d.status.phase == "Ready"
    assert d.condition("Reachable") == ("True", Reason.PROVIDER_MISREPORT)


def test_a_misreport_needs_the_pinned_key():
    d = ready()
    d.host().key = "ssh-ed25519 BBBB"
    d.cloud.wedge("pod-1")
    d.run(until=lambda: d.cloud.sent("delete") != [], limit=timedelta(minutes=30))


def test_a_mapping_without_an_address_runs_the_clock():
    d = ready()
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.change("pod-1", mappings=(PortMapping(22, None, None),))
    d.run(limit=timedelta(minutes=10))
    assert d.condition("Reachable") == ("False", Reason.PRIVATE_MAPPING_ONLY)
    d.run(until=lambda: d.cloud.sent("delete") != [], limit=timedelta(minutes=10))


def test_a_new_mapping_is_a_stale_row_and_probed_before_it_is_believed():
    d = ready()
    d.cloud.change("pod-1", mappings=(PortMapping(22, 555, "5.6.7.8"),))
    d.cloud.now += timedelta(seconds=5)
    d.cloud.tick()
    d.host().ssh = SshClass.TIMEOUT
    d.step()
    assert d.status.endpoint.address == "5.6.7.8:555"
    assert d.status.probe.class_ == "Timeout"
    d.host().ssh = SshClass.OK
    d.run(limit=timedelta(minutes=2))
    assert d.status.phase == "Ready"
    assert d.cloud.sent("delete") == []


@pytest.mark.parametrize("mapped", [True, False])
def test_without_our_own_key_nothing_is_concluded_about_the_pod(mapped):
    d = ready()
    before = d.status
    d.host().ssh, d.host().message = SshClass.NO_KEY, "Secret key has no value"
    if not mapped:
        d.cloud.wedge("pod-1")
    d.run(limit=timedelta(hours=6))
    assert d.cloud.sent("delete") == []
    assert d.condition("Reachable") == ("Unknown", Reason.SSH_KEY_UNAVAILABLE)
    assert d.condition("Ready")[0] == "Unknown"
    assert d.condition("Stalled") == ("True", Reason.SSH_KEY_UNAVAILABLE)
    assert d.status.phase == "Ready"
    assert d.status.probe == before.probe
    assert d.status.endpoint == before.endpoint
    assert "Secret key has no value" in d.status.message


def test_a_missing_key_does_not_end_a_wedge_clock_that_runs():
    d = ready()
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-1")
    d.run(limit=timedelta(minutes=5))
    first = d.status.episode
    assert first is not None
    d.host().ssh = SshClass.NO_KEY
    d.run(limit=timedelta(minutes=2))
    assert d.status.episode == first


def test_failed_probes_of_a_loss_that_is_over_do_not_count_towards_the_next():
    d = ready(health={"readiness": "Mapping"})
    for _ in range(3):
        d.host().ssh = SshClass.TIMEOUT
        shown = dict(d.cloud.pods)
        d.cloud.change("pod-1", mappings=(), has_runtime=False)
        for _ in range(d.spec.health.confirmations - 1):
            d.cloud.now += timedelta(seconds=15)
            d.cloud.tick()
            d.settle()
        d.cloud.pods.update(shown)
        d.run(limit=timedelta(minutes=1))
        assert not d.status.endpoint.lost
        assert d.status.phase == "Ready"
