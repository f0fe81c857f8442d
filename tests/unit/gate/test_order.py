"""What the gate asks before it looks at any cell: gone, identity, shields, approval, migration, Disposable."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gatekit.cells import NOW, POD, agent_cell, empty_listing, status
from gatekit.questions import cell, pod_spec, pod_status, provider_pod, question, visit
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import Blocked, GateAct, GateNeed, GateReason, NeedsFacts, Safe, Undecided, judge
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.core.provider import AccountIdentity, Stamp
from gpupod_operator.core.receipts import evidence_digest

ALL = list(GateReason)
NOT_UNDO = [r for r in GateReason if r is not GateReason.UNDO]


@pytest.mark.parametrize("reason", ALL)
def test_a_pod_that_is_proven_gone_is_safe_without_any_other_fact(reason):
    verdict = judge(question(reason, gone=True, account=None, pod=None, cells=None, shell=None))
    assert isinstance(verdict, Safe)
    assert verdict.receipt.pod_id == POD


@pytest.mark.parametrize("reason", ALL)
def test_everything_verified_is_safe_with_a_receipt_bound_to_its_evidence(reason):
    verdict = judge(question(reason))
    assert isinstance(verdict, Safe)
    receipt = verdict.receipt
    assert (receipt.pod_id, receipt.at, receipt.reason) == (POD, NOW, reason)
    assert (receipt.verified, receipt.rerun, receipt.discarded) == (1, (), ())
    assert receipt.digest == evidence_digest(verdict.evidence)
    assert verdict.evidence["cells"]["c1"]["head"] == "head-1"
    assert verdict.evidence["cells"]["c1"]["commit"] == "head-1"


def test_facts_that_are_missing_are_asked_for_in_order():
    asked = question(account=None, pod=None, cells=None, shell=None)
    assert judge(asked) == NeedsFacts(frozenset({GateNeed.ACCOUNT, GateNeed.POD}))
    asked = question(cells=None, shell=None)
    assert judge(asked) == NeedsFacts(frozenset({GateNeed.CELLS}))
    asked = question(cells=Known((cell(listing=None, agent=None),)), shell=None)
    assert judge(asked) == NeedsFacts(frozenset({GateNeed.SHELL}))
    asked = replace(asked, shell=visit())
    assert judge(asked) == NeedsFacts(frozenset({GateNeed.HUB}))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"account": Unknown("timeout")}, Reason.OBSERVATION_FAILED),
        ({"account": Known(AccountIdentity("other", "fp", verified=True))}, Reason.ACCOUNT_MISMATCH),
        ({"status": pod_status(account={"id": None})}, Reason.ACCOUNT_MISMATCH),
        ({"pod": Unknown("502")}, Reason.OBSERVATION_FAILED),
        ({"pod": Known(provider_pod(id="pod-2"))}, Reason.OBSERVATION_SUSPECT),
        ({"pod": Known(provider_pod(stamp=None))}, Reason.ADOPT_FOREIGN),
        ({"pod": Known(provider_pod(stamp=Stamp("inst/ml/sweep/other-uid", "n")))}, Reason.ADOPT_FOREIGN),
        ({"pod": Known(provider_pod(stamp=Stamp("clone/ml/sweep/uid-pod", "n")))}, Reason.ADOPT_FOREIGN),
    ],
)
@pytest.mark.parametrize("why", ALL)
def test_account_id_and_ownership_have_to_agree_with_the_live_pod(why, changes, reason):
    verdict = judge(question(why, launch_confirmed=False, **changes))
    assert isinstance(verdict, Undecided)
    assert verdict.reason is reason


@pytest.mark.parametrize("why", NOT_UNDO)
def test_a_pod_that_is_not_the_recorded_one_is_unknown(why):
    verdict = judge(question(why, status=pod_status(attempt={"podId": "pod-2"})))
    assert isinstance(verdict, Undecided)


def test_an_adopted_pod_without_a_stamp_is_ours_by_its_exact_id():
    adopted = pod_spec(adopt={"podId": POD})
    asked = question(spec=adopted, pod=Known(provider_pod(stamp=None)), created_by_us=False)
    assert isinstance(judge(asked), Safe)


def test_undo_before_any_launch_asks_account_id_and_ownership_only():
    spec = pod_spec(keepRunning=True)
    asked = question(GateReason.UNDO, spec=spec, cells=None, shell=None, launch_confirmed=False)
    assert isinstance(judge(asked), Safe)


def test_undo_after_a_launch_or_of_a_pod_taken_over_asks_for_the_cells():
    for changes in ({"launch_confirmed": True}, {"launch_confirmed": False, "created_by_us": False}):
        asked = question(GateReason.UNDO, cells=None, shell=None, **changes)
        assert judge(asked) == NeedsFacts(frozenset({GateNeed.CELLS}))


@pytest.mark.parametrize("why", NOT_UNDO)
@pytest.mark.parametrize(
    ("shield", "reason", "edit"),
    [
        ({"paused": True}, Reason.PAUSED, "spec.paused: false"),
        ({"keepRunning": True}, Reason.KEEP_RUNNING, "spec.keepRunning: false"),
    ],
)
def test_a_shield_blocks_and_names_the_edit_also_for_disposable_artifacts(why, shield, reason, edit):
    spec = pod_spec(remediation={"artifacts": "Disposable"}, **shield)
    verdict = judge(question(why, spec=spec))
    assert isinstance(verdict, Blocked)
    assert verdict.reason is reason
    assert edit in verdict.why
    assert "$2.5/h" in verdict.why


@pytest.mark.parametrize("why", [GateReason.MIGRATE, GateReason.EXPIRE])
def test_manual_approval_blocks_automatic_ends_until_the_pod_is_named(why):
    spec = pod_spec(remediation={"approval": "Manual"})
    verdict = judge(question(why, spec=spec))
    assert isinstance(verdict, Blocked)
    assert verdict.reason is Reason.APPROVAL_REQUIRED
    assert f"approve-terminate: {POD}" in verdict.why
    safe = judge(question(why, spec=spec, approved_by="ann"))
    assert isinstance(safe, Safe)
    assert safe.receipt.approved_by == "ann"


def test_an_approval_older_than_a_day_is_expired():
    spec = pod_spec(remediation={"approval": "Manual"})
    seen = pod_status(approval={"podId": POD, "firstSeen": NOW - timedelta(hours=24)})
    verdict = judge(question(spec=spec, status=seen))
    assert isinstance(verdict, Blocked)
    assert verdict.reason is Reason.APPROVAL_EXPIRED


@pytest.mark.parametrize("why", [GateReason.REPLACE, GateReason.DELETE, GateReason.STOP, GateReason.RESET])
def test_manual_approval_is_not_asked_for_what_a_person_ordered(why):
    assert isinstance(judge(question(why, spec=pod_spec(remediation={"approval": "Manual"}))), Safe)


MIGRATION_PROBLEMS = [
    ({"recreate_problem": "spec.container.image is empty"}, Reason.INVALID_REQUEST),
    ({"breaker_open": True}, Reason.BREAKER_OPEN),
    (
        {"status": pod_status(migration={"countInWindow": 3, "windowStart": NOW - timedelta(hours=23)})},
        Reason.MIGRATION_BUDGET_EXHAUSTED,
    ),
    ({"pod": Known(provider_pod(persistent_gb=20))}, Reason.HOST_VOLUME_KEPT),
    (
        {"spec": pod_spec(volume={"persistent": {"sizeGb": 20, "path": "/workspace"}})},
        Reason.HOST_VOLUME_KEPT,
    ),
]


@pytest.mark.parametrize(("changes", "reason"), MIGRATION_PROBLEMS)
def test_a_migration_needs_a_spec_that_creates_budget_a_closed_breaker_and_no_kept_volume(changes, reason):
    verdict = judge(question(GateReason.MIGRATE, **changes))
    assert isinstance(verdict, Blocked)
    assert verdict.reason is reason


@pytest.mark.parametrize(("changes", "reason"), MIGRATION_PROBLEMS)
def test_what_a_migration_needs_is_not_asked_of_a_delete(changes, reason):
    assert isinstance(judge(question(GateReason.DELETE, **changes)), Safe)


def test_a_migration_budget_is_whole_again_after_its_window():
    old = pod_status(migration={"countInWindow": 3, "windowStart": NOW - timedelta(hours=24)})
    assert isinstance(judge(question(status=old)), Safe)


def test_a_delete_that_is_repeated_after_its_receipt_is_not_stopped_by_its_own_count():
    counted = {"countInWindow": 3, "windowStart": NOW - timedelta(hours=1)}
    again = pod_status(migration=counted, receipt={"podId": POD, "reason": "Migrate"})
    assert isinstance(judge(question(status=again)), Safe)
    other = pod_status(migration=counted, receipt={"podId": "pod-0", "reason": "Migrate"})
    assert isinstance(judge(question(status=other)), Blocked)


def test_discard_lets_a_persistent_volume_go():
    spec = pod_spec(remediation={"hostVolume": "Discard"})
    assert isinstance(judge(question(spec=spec, pod=Known(provider_pod(persistent_gb=20)))), Safe)


@pytest.mark.parametrize(
    "spend", [{"allowPaid": False}, {"maxPricePerHour": "0.01"}], ids=["allowPaid", "maxPricePerHour"]
)
def test_money_does_not_block_a_migration(spend):
    assert isinstance(judge(question(spec=pod_spec(spend=spend))), Safe)


@pytest.mark.parametrize("why", NOT_UNDO)
def test_disposable_artifacts_need_no_cell(why):
    spec = pod_spec(remediation={"artifacts": "Disposable"})
    verdict = judge(question(why, spec=spec, cells=None, shell=None))
    assert isinstance(verdict, Safe)
    assert "Disposable" in (verdict.receipt.policy or "")


def test_cells_that_cannot_be_listed_are_unknown():
    verdict = judge(question(cells=Unknown("the API server did not answer")))
    assert isinstance(verdict, Undecided)
    assert "did not answer" in verdict.why


def test_an_act_that_is_not_named_is_taken_as_the_strictest_of_its_reason():
    assert question(GateReason.EXPIRE).effective_act is GateAct.DESTROY
    assert question(GateReason.DELETE).effective_act is GateAct.DESTROY
    assert question(GateReason.STOP).effective_act is GateAct.STOP
    assert question(GateReason.RESET).effective_act is GateAct.RESET
    assert question(GateReason.EXPIRE, act=GateAct.STOP).effective_act is GateAct.STOP


def test_a_receipt_names_at_most_fifty_and_counts_the_rest():
    cells = tuple(
        cell(
            f"c{i:03}",
            status=status(done=False),
            listing=Known(empty_listing()),
            agent=agent_cell(f"c{i:03}", "Pending"),
        )
        for i in range(60)
    )
    verdict = judge(question(cells=Known(cells)))
    assert isinstance(verdict, Safe)
    assert len(verdict.receipt.rerun or ()) == 50
    assert "60 cells re-run in all" in (verdict.receipt.policy or "")
    assert len(verdict.evidence["cells"]) == 60
