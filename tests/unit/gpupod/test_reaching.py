"""From PROVISIONING to Ready, and what is done about a pod that says RUNNING and is not reachable."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.provider import PortMapping, ProviderState
from gpupod_operator.core.shell import SshClass
from podkit.driver import Driver, spec_of

DISPOSABLE = {"artifacts": "Disposable"}
WORK = {"command": ["run"]}


def booting(**changes) -> Driver:
    d = Driver(spec_of(remediation=DISPOSABLE, **changes))
    d.cloud.make = lambda p: replace(
        p, state=ProviderState.PROVISIONING, raw_state="PROVISIONING", mappings=(), has_runtime=False, started_at=None
    )
    return d


def ready(**changes) -> Driver:
    d = Driver(spec_of(**{"remediation": DISPOSABLE, **changes}))
    d.run(until=lambda: d.status.phase == "Ready")
    d.run(limit=timedelta(minutes=1))
    return d


def test_a_boot_within_the_start_budget_is_waited_for():
    d = booting()
    d.run(limit=timedelta(minutes=19))
    assert d.status.phase == "Provisioning"
    assert d.status.episode is None
    assert len(d.cloud.calls) == 1


def test_past_the_start_budget_a_pull_extends_it_once_and_then_it_is_a_wedge():
    d = booting()
    d.cloud.logs = ("create container: still fetching image img",)
    d.run(limit=timedelta(minutes=39))
    assert d.condition("Reachable") == ("False", Reason.SLOW_PULL)
    assert d.cloud.sent("delete") == []
    d.run(until=lambda: d.cloud.sent("delete") != [], limit=timedelta(minutes=10))


def test_an_image_error_is_never_moved_off():
    d = booting()
    d.cloud.logs = ("failed to pull image img: manifest unknown",)
    d.run(limit=timedelta(hours=4))
    assert d.cloud.sent("delete") == []
    assert len(d.cloud.sent("create")) == 1
    assert d.condition("Stalled") == ("True", Reason.IMAGE_ERROR)


def test_an_image_error_ends_the_wait_within_two_minutes():
    d = booting()
    d.cloud.logs = ("pull access denied for img",)
    d.run(limit=timedelta(minutes=2))
    assert d.condition("Stalled") == ("True", Reason.IMAGE_ERROR)
    assert d.status.phase == "Failed"


def test_a_log_that_cannot_be_read_does_not_take_an_image_error_back():
    d = booting()
    d.cloud.logs = ("pull access denied for img",)
    d.run(limit=timedelta(minutes=2))
    d.cloud.logs = None
    d.run(limit=timedelta(minutes=5))
    assert d.condition("Stalled") == ("True", Reason.IMAGE_ERROR)


def test_an_image_error_that_shows_late_ends_a_running_wedge_clock():
    d = booting(health={"startTimeout": "5m", "wedgeAfter": "30m"})
    d.run(limit=timedelta(minutes=20))
    assert d.status.episode.kind == Reason.NEVER_PUBLISHED
    d.cloud.logs = ("pull access denied for img",)
    d.run(limit=timedelta(hours=2))
    assert d.cloud.sent("delete") == []
    assert d.condition("Stalled") == ("True", Reason.IMAGE_ERROR)


def test_nothing_in_the_log_past_the_budget_is_a_wedge_and_moved_off():
    d = booting()
    d.run(until=lambda: d.cloud.sent("delete") != [], limit=timedelta(minutes=30))
    assert d.cloud.sent("delete")[0].at - d.cloud.sent("create")[0].at > timedelta(minutes=20)


def test_running_without_any_mapping_is_a_wedge_only_past_the_budget():
    d = booting()
    d.cloud.make = lambda p: replace(p, mappings=())
    d.run(limit=timedelta(minutes=19))
    assert d.cloud.sent("delete") == []
    d.run(until=lambda: d.cloud.sent("delete") != [], limit=timedelta(minutes=10))
    assert d.status.migration.reason == Reason.NEVER_PUBLISHED


@pytest.mark.parametrize(
    ("ssh", "reason"),
    [
        (SshClass.REFUSED, Reason.SERVICE_NOT_READY),
        (SshClass.DROPPED, Reason.SERVICE_NOT_READY),
        (SshClass.OTHER, Reason.SERVICE_NOT_READY),
        (SshClass.AUTH_DENIED, Reason.AUTH_DENIED),
        (SshClass.HOST_KEY, Reason.HOST_KEY),
        (SshClass.NAME_RESOLUTION, Reason.NAME_RESOLUTION),
    ],
)
def test_a_host_that_lives_is_never_moved_off(ssh, reason):
    d = ready()
    d.host().ssh = ssh
    d.run(limit=timedelta(hours=3))
    assert d.condition("Reachable") == ("False", reason)
    assert d.cloud.sent("delete") == []
    assert d.status.episode is None


def test_a_timeout_past_the_clock_is_moved_off():
    d = ready()
    d.host().ssh = SshClass.TIMEOUT
    d.run(limit=timedelta(minutes=15))
    assert d.condition("Reachable") == ("False", Reason.HOST_UNRESPONSIVE)
    assert d.cloud.sent("delete") == []
    d.run(until=lambda: d.pod_id == "pod-2" and d.status.phase == "Ready", limit=timedelta(minutes=10))


def test_ssh_is_waited_for_within_ssh_wait():
    d = Driver(spec_of(remediation=DISPOSABLE))
    d.hosts["pod-1"] = d.host("pod-1")
    d.hosts["pod-1"].ssh = SshClass.REFUSED
    d.run(limit=timedelta(minutes=9))
    assert d.condition("Reachable") == ("False", Reason.SERVICE_NOT_READY)
    assert d.condition("Stalled")[0] == "False"
    d.run(limit=timedelta(minutes=5))
    assert d.condition("Stalled") == ("True", Reason.SERVICE_NOT_READY)


def test_a_new_start_may_show_a_new_host_key():
    d = ready()
    d.cloud.exit("pod-1")
    d.run(limit=timedelta(minutes=1))
    d.cloud.run("pod-1")
    d.host().key = "ssh-ed25519 BBBB"
    d.run(until=lambda: d.status.phase == "Ready")
    assert d.status.endpoint.host_key == "ssh-ed25519 BBBB"


def test_a_port_that_was_not_declared_is_patched_as_a_reset_with_a_receipt():
    d = ready()
    d.cloud.change("pod-1", ports=("8888/http",), mappings=())
    d.host().ssh = SshClass.TIMEOUT

    def mapped_again():
        if "22/tcp" in d.pod.ports:
            d.cloud.change("pod-1", mappings=(PortMapping(22, 777, "1.2.3.4"),))
            d.host().ssh = SshClass.OK
        return d.status.phase == "Ready" and d.cloud.sent("patch") != []

    d.run(until=mapped_again, limit=timedelta(minutes=30))
    (patch,) = d.cloud.sent("patch")
    assert patch.request.ports == ("8888/http", "22/tcp")
    assert d.status.receipt.reason == "Reset"
    assert d.cloud.sent("delete") == []
    assert d.status.attempt.restarted
    assert d.status.attempt.intent == "None"


def test_without_cells_the_reset_of_an_undeclared_port_is_held_by_the_gate():
    d = ready(remediation={"artifacts": "RequireVerified"}, workload=WORK)
    d.cloud.change("pod-1", ports=("8888/http",), mappings=())
    d.host().ssh = SshClass.TIMEOUT
    d.run(limit=timedelta(hours=1))
    assert [c.verb for c in d.cloud.calls] == ["create"]
    assert d.condition("Stalled") == ("True", Reason.NO_CELLS_DECLARED)


def test_a_patch_that_is_refused_is_not_repeated_in_a_busy_loop():
    d = ready()
    d.cloud.change("pod-1", ports=("8888/http",), mappings=())
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.patch_script = ["Throttled"] * 1000
    d.run(limit=timedelta(minutes=40))
    sent = [c.at for c in d.cloud.sent("patch")]
    assert sent
    assert all(b - a >= timedelta(seconds=60) for a, b in pairwise(sent))


def test_paused_watches_and_acts_on_nothing():
    d = ready()
    d.edit(paused=True)
    d.cloud.wedge("pod-1")
    d.host().ssh = SshClass.TIMEOUT
    d.run(limit=timedelta(hours=2))
    assert [c.verb for c in d.cloud.calls] == ["create"]
    assert d.status.endpoint is not None
    assert d.condition("Reachable")[0] == "False"


def test_keep_running_holds_a_migration():
    d = ready()
    d.edit(keep_running=True)
    d.cloud.wedge("pod-1")
    d.host().ssh = SshClass.TIMEOUT
    d.run(limit=timedelta(hours=2))
    assert [c.verb for c in d.cloud.calls] == ["create"]
    assert d.condition("ArtifactsSafe")[1] == Reason.KEEP_RUNNING


def test_an_unreachable_workload_is_unknown_and_not_running():
    d = ready(workload=WORK)
    assert d.condition("WorkloadRunning")[0] == "True"
    d.cloud.wedge("pod-1")
    d.host().ssh = SshClass.TIMEOUT
    d.run(limit=timedelta(minutes=5))
    assert d.condition("WorkloadRunning")[0] == "Unknown"


def test_a_stopped_pod_runs_no_workload():
    d = ready(workload=WORK)
    d.cloud.exit("pod-1")
    d.run(limit=timedelta(minutes=5))
    assert d.condition("WorkloadRunning") == ("False", Reason.POD_NOT_RUNNING)
