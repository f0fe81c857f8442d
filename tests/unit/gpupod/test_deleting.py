"""Deleting the object: three policies, creates under way, and never a finalizer that goes with a pod left behind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.core.provider import AccountIdentity, Failure, ProviderState
from gpupod_operator.core.shell import SshClass
from podkit.driver import Crashed, Driver, spec_of

HOUR = timedelta(hours=1)


def ready(**changes) -> Driver:
    d = Driver(spec_of(**changes))
    d.run(until=lambda: d.status.phase == "Ready")
    d.run(limit=timedelta(minutes=1))
    return d


def test_terminate_deletes_with_a_receipt_and_releases_after_the_proof():
    d = ready()
    d.deleting = True
    d.run(until=lambda: d.released)
    assert [c.verb for c in d.cloud.calls] == ["create", "delete"]
    assert d.status.receipt.reason == "Delete"
    assert d.now - d.cloud.sent("delete")[0].at >= timedelta(seconds=15)
    assert d.cloud.pods == {}


@pytest.mark.parametrize("crash", ["intent", "answer"])
def test_a_crash_around_the_delete_is_made_good(crash):
    d = ready()
    d.deleting, d.crash = True, crash
    with pytest.raises(Crashed):
        d.run()
    d.run(until=lambda: d.released)
    assert d.cloud.pods == {}


def test_a_delete_without_effect_is_repeated_and_never_releases():
    d = ready()
    d.deleting, d.cloud.zombie = True, True
    d.run(limit=HOUR)
    assert not d.released
    assert 2 < len(d.cloud.sent("delete")) < 130


def test_stop_releases_only_after_two_observations_of_exited():
    d = ready(deletionPolicy="Stop")
    d.deleting = True
    d.run(until=lambda: d.released)
    assert [c.verb for c in d.cloud.calls] == ["create", "stop"]
    assert d.status.released == ("pod-1",)
    assert d.now - d.cloud.sent("stop")[0].at >= timedelta(seconds=15)


def test_a_pod_that_runs_again_after_the_release_was_noted_is_not_let_go():
    d = ready(deletionPolicy="Stop")
    d.deleting = True
    d.run(until=lambda: d.status.released == ("pod-1",))
    d.cloud.run("pod-1")
    d.cloud.tick()
    d.settle()
    assert not d.released


def test_an_error_pod_cannot_be_stopped_and_the_message_says_what_to_do():
    d = ready(deletionPolicy="Stop")
    d.cloud.change("pod-1", state=ProviderState.ERROR, raw_state="ERROR")
    d.deleting = True
    d.run(limit=HOUR)
    assert not d.released
    assert "Terminate" in d.status.message


def test_orphan_releases_at_once_with_the_id_on_record():
    d = ready(deletionPolicy="Orphan")
    d.deleting = True
    d.step()
    assert d.released
    assert d.status.released == ("pod-1",)
    assert set(d.cloud.pods) == {"pod-1"}


@pytest.mark.parametrize("script", ["lost", "late", Failure.AMBIGUOUS])
def test_deleting_while_a_create_is_open_ends_with_no_pod(script):
    d = Driver()
    d.cloud.script = [script]
    d.step()
    d.deleting = True
    d.run(limit=timedelta(seconds=30))
    if script == "late":
        assert not d.released
        d.cloud.hidden.clear()
    d.run(until=lambda: d.released)
    assert d.cloud.pods == {}


def test_deleting_while_paused_waits_for_the_edit_with_a_pod():
    d = ready()
    d.edit(paused=True)
    d.deleting = True
    d.run(limit=HOUR)
    assert not d.released
    assert [c.verb for c in d.cloud.calls] == ["create"]
    assert d.condition("Stalled") == ("True", Reason.PAUSED)
    d.edit(paused=False)
    d.run(until=lambda: d.released)


def test_deleting_while_paused_with_an_open_create_leaks_nothing():
    d = Driver()
    d.cloud.script = ["lost"]
    d.step()
    d.edit(paused=True)
    d.deleting = True
    d.run(limit=HOUR)
    assert not d.released
    d.edit(paused=False)
    d.run(until=lambda: d.released)
    assert d.cloud.pods == {}


def test_keep_running_holds_a_deletion():
    d = ready(keepRunning=True)
    d.deleting = True
    d.run(limit=HOUR)
    assert not d.released
    assert d.cloud.sent("delete") == []
    d.edit(keep_running=False)
    d.run(until=lambda: d.released)


@pytest.mark.parametrize("listing", ["unknown", "suspect"])
def test_an_unknown_inventory_never_releases(listing):
    d = ready()
    d.deleting = True
    d.cloud.listing, d.cloud.get = listing, "404"
    d.run(limit=HOUR)
    assert not d.released
    assert d.cloud.sent("delete") == []
    d.cloud.listing, d.cloud.get = "ok", "ok"
    d.run(until=lambda: d.released)


def test_another_account_never_releases():
    d = ready()
    d.deleting = True
    d.account = Known(AccountIdentity("other", "fp2", verified=True))
    d.cloud.hidden.add("pod-1")
    d.run(limit=HOUR)
    assert not d.released


def test_a_broken_key_holds_no_object_that_has_no_pod():
    d = Driver(account=Unknown("401: RunPod refuses the key"))
    d.run(limit=timedelta(minutes=2))
    d.deleting = True
    d.run(until=lambda: d.released)


def test_a_broken_key_holds_an_object_with_a_pod():
    d = ready()
    d.account = Unknown("401: RunPod refuses the key")
    d.deleting = True
    d.run(limit=HOUR)
    assert not d.released


def test_deleting_an_object_whose_pod_was_never_created_releases_at_once():
    d = Driver(spec_of(spend={"allowPaid": False}))
    d.run(limit=timedelta(minutes=1))
    d.deleting = True
    d.run(until=lambda: d.released)


def test_deleting_in_the_middle_of_a_migration_creates_nothing_more():
    d = ready(remediation={"artifacts": "Disposable"})
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-1")
    d.run(until=lambda: d.cloud.sent("delete") != [], limit=HOUR)
    d.deleting = True
    d.run(until=lambda: d.released)
    assert d.cloud.pods == {}
    assert len(d.cloud.sent("create")) == 1


def test_deleting_a_stopped_object_deletes_its_pod():
    d = ready()
    d.edit(state="Stopped")
    d.run(until=lambda: d.status.phase == "Stopped")
    d.deleting = True
    d.run(until=lambda: d.released)
    assert d.cloud.pods == {}


def test_a_ghost_is_gone_before_the_finalizer():
    d = Driver()
    d.cloud.script = ["late"]
    d.run(until=lambda: d.status.phase == "Ready")
    d.cloud.hidden.clear()
    d.deleting = True
    d.run(until=lambda: d.released)
    assert d.cloud.pods == {}


def test_orphan_lets_go_without_a_key_that_works():
    d = Driver(spec_of(deletionPolicy="Orphan"))
    d.run(until=lambda: d.status.phase == "Ready")
    d.account = Unknown("401: RunPod refuses the key")
    d.deleting = True
    d.run(limit=timedelta(minutes=1))
    assert d.released
    assert d.status.released == ("pod-1",)
    assert d.cloud.sent("delete") == []


def test_a_deletion_that_was_proven_once_needs_no_key_again():
    d = Driver(spec_of(remediation={"artifacts": "Disposable"}))
    d.run(until=lambda: d.status.phase == "Ready")
    d.deleting = True
    d.run(until=lambda: d.released, limit=timedelta(minutes=10))
    d.released, d.account = False, Unknown("401: RunPod refuses the key")
    d.restart()
    d.run(limit=timedelta(minutes=1))
    assert d.released, "the API server took the status and not yet the finalizer"
