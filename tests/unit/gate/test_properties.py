"""Laws that hold for every question, not only for those that somebody thought of."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from gatekit.cells import (
    CONTENT,
    NOW,
    POD,
    agent_cell,
    cell_spec,
    commit,
    empty_listing,
    listing,
    manifest_bytes,
    status,
)
from gatekit.questions import cell, no_contact, pod_spec, pod_status, provider_pod, question, visit
from gpupod_operator.core.gate import CellFacts, DrainFirst, GateQuestion, GateReason, Safe, judge
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.core.provider import ProviderState
from gpupod_operator.core.receipts import evidence_digest

STATES = ["Pending", "Producing", "Produced", "Uploading", "Uploaded", "Failed", "Blocked"]
PHASES = [None, "Pending", "Producing", "Produced", "Uploading", "Partial", "Verified", "Blocked", "Failed", "Lost"]


def listings(uid: str) -> dict[str, object]:
    whole = listing(uid)
    return {
        "whole": Known(whole),
        "nothing": Known(empty_listing()),
        "part": Known(listing(uid, on_hub={"eval/metrics.json": CONTENT["eval/metrics.json"]})),
        "changed": Known(listing(uid, on_hub={**CONTENT, "weights/a.bin": b"B" * 64})),
        "of another cell": Known(listing("somebody")),
        "without manifest": Known(replace(whole, manifest=None)),
        "broken manifest": Known(replace(whole, manifest=b"{")),
        "old": Known(listing(uid, at=NOW - timedelta(days=1))),
        "unknown": Unknown("503"),
        "not asked": None,
    }


def mostly(usual: object, *rare: object) -> st.SearchStrategy:
    """`usual` four times in five: worlds in which one thing is wrong find more than those in which all is."""
    return st.integers(0, 4).flatmap(lambda n: st.sampled_from(rare) if n == 0 else st.just(usual))


@st.composite
def cells(draw, uid: str = "c1") -> CellFacts:
    agent = agent_cell(uid, draw(st.sampled_from(STATES)))
    if agent.state in ("Failed", "Blocked"):
        agent = replace(agent, done_seen=draw(st.booleans()))
    commits = draw(mostly(Known((commit(uid, manifest_bytes(uid)),)), None, Known(()), Unknown("429")))
    return cell(
        uid,
        spec=cell_spec(root=draw(st.sampled_from(["/workspace/out/c", "/root/c"]))),
        status=status(
            draw(st.sampled_from(PHASES)),
            pod_id=draw(mostly(POD, "pod-0")),
            done=draw(st.sampled_from([True, False, None])),
        ),
        listing=draw(st.sampled_from([*listings(uid).values(), *[listings(uid)["nothing"]] * 4])),
        commits=commits,
        agent=draw(mostly(agent, None)),
        abandoned=draw(mostly(None, "given up")),
        deleting=draw(st.booleans()),
    )


@st.composite
def questions(draw) -> GateQuestion:
    mine = [draw(cells("c1")), draw(cells("c2"))][: draw(mostly(1, 2))]
    agents = [c.agent for c in mine if c.agent is not None]
    shell = draw(
        st.sampled_from(
            [
                no_contact(),
                no_contact(),
                visit(*agents),
                visit(*agents),
                visit(*agents, launched=False),
                visit(*agents, live=True),
                visit(*agents, live=None),
                visit(*agents, running=False),
                visit(*agents, pod_id="pod-0"),
                None,
            ]
        )
    )
    network = {"volume": {"network": {"volumeId": "v1", "path": "/workspace"}}}
    persistent = {"volume": {"persistent": {"sizeGb": 9, "path": "/workspace"}}}
    spec = pod_spec(
        remediation={"inFlight": draw(mostly("Rerun", "Block")), "hostVolume": "Discard"},
        **draw(mostly({}, network, persistent)),
        **draw(mostly({}, {"container": {"cmd": ["x"]}}, {"paused": True}, {"keepRunning": True})),
    )
    state = draw(mostly(ProviderState.RUNNING, ProviderState.EXITED, ProviderState.ERROR))
    live = provider_pod(
        state=state,
        raw_state=str(state),
        network_volume_id=draw(st.sampled_from([None, "v1"])),
        persistent_gb=draw(st.sampled_from([None, 9])),
    )
    return question(
        draw(st.sampled_from(list(GateReason))),
        spec=spec,
        status=pod_status(pod={"providerStatus": draw(st.sampled_from([str(state), "RUNNING"]))}),
        pod=draw(mostly(Known(live), Unknown("502"), None)),
        cells=draw(mostly(Known(tuple(mine)), Known(()), Unknown("apiserver"), None)),
        shell=shell,
        created_by_us=draw(mostly(True, False)),
        ever_contacted=draw(mostly(True, False)),
        launch_confirmed=draw(mostly(True, False)),
        first_start=draw(st.booleans()),
        contact_lost_at=draw(mostly(NOW - timedelta(hours=1), None, NOW)),
    )


def on_hub(c: CellFacts) -> bool:
    """The oracle: exactly the declared bytes, with this cell's manifest, as of now."""
    return isinstance(c.listing, Known) and c.listing.value in (
        listing(c.uid),
        listing(c.uid, at=NOW - timedelta(days=1)),
    )


def finished(q: GateQuestion, c: CellFacts) -> bool:
    """The operator could have known that it was finished on this pod."""
    bound = q.shell is not None and q.shell.agent is not None and q.shell.agent.pod_id == q.pod_id
    by_agent = bound and c.agent is not None and (c.agent.done_seen or c.agent.state in ("Produced", "Uploading"))
    seen = c.status.observation
    return by_agent or (seen is not None and seen.pod_id == q.pod_id and bool(seen.done_seen))


def disk_is_kept_or_gone(q: GateQuestion, c: CellFacts) -> bool:
    assert isinstance(q.pod, Known)
    if q.pod.value.state is ProviderState.EXITED and q.status.pod is not None:
        if q.status.pod.provider_status == "EXITED" and c.spec.source.done_file.startswith("/root"):
            return True
        if q.status.pod.provider_status == "EXITED" and q.spec.volume is None:
            return True
    return c.spec.source.done_file.startswith("/workspace") and q.spec.volume is not None


@given(questions())
@settings(max_examples=600, deadline=None)
def test_no_finished_unverified_cell_is_lost_without_an_override(q):
    verdict = judge(q)
    undo = q.reason is GateReason.UNDO and q.created_by_us and not q.launch_confirmed
    if not isinstance(verdict, Safe) or undo:
        return
    assert isinstance(q.cells, Known)
    for c in q.cells.value:
        if finished(q, c) and not on_hub(c):
            assert c.abandoned is not None or disk_is_kept_or_gone(q, c), verdict.receipt


@given(questions())
@settings(max_examples=200, deadline=None)
def test_unknown_never_yields_safe(q):
    verdict = judge(q)
    if not isinstance(verdict, Safe):
        return
    assert isinstance(q.pod, Known)
    assert isinstance(q.account, Known)
    undo = q.reason is GateReason.UNDO and q.created_by_us and not q.launch_confirmed
    assert undo or isinstance(q.cells, Known)


@given(questions(), st.sampled_from(["account", "pod", "cells"]))
@settings(max_examples=200, deadline=None)
def test_turning_a_fact_into_an_unknown_never_permits_more(q, fact):
    if q.reason is GateReason.UNDO and fact == "cells":
        return
    assert not isinstance(judge(replace(q, **{fact: Unknown("timeout")})), Safe)


@given(questions())
@settings(max_examples=400, deadline=None)
def test_a_cell_whose_hub_is_unknown_is_let_go_only_where_the_hub_does_not_matter(q):
    if not isinstance(q.cells, Known):
        return
    blind = tuple(replace(c, listing=Unknown("503")) for c in q.cells.value)
    verdict = judge(replace(q, cells=Known(blind)))
    if isinstance(verdict, Safe):
        for told in verdict.evidence["cells"].values():
            assert told["outcome"] in ("Kept", "Nothing", "Abandoned") or told.get("wiped"), told


@given(questions())
@settings(max_examples=200, deadline=None)
def test_a_shield_holds_whatever_else_is_true(q):
    verdict = judge(replace(q, spec=q.spec.model_copy(update={"paused": True})))
    undo = q.reason is GateReason.UNDO and q.created_by_us and not q.launch_confirmed
    assert undo or not isinstance(verdict, Safe | DrainFirst)


@given(questions())
@settings(max_examples=200, deadline=None)
def test_every_receipt_names_the_pod_and_is_bound_to_its_evidence(q):
    verdict = judge(q)
    if isinstance(verdict, Safe):
        assert verdict.receipt.pod_id == q.pod_id
        assert verdict.receipt.digest == evidence_digest(verdict.evidence)
        listed = set(verdict.receipt.rerun or ()) | set(verdict.receipt.discarded or ())
        assert isinstance(q.cells, Known) or not listed
