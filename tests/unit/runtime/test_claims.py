"""The index of destinations agrees with the decision over all cells, and looks at few of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gpupod_operator.api.names import SWEEPCELLS
from gpupod_operator.api.sweepcell import SweepCellSpec
from gpupod_operator.api.times import parse_time
from gpupod_operator.core.sweepcell.destinations import Claim, overlapping
from gpupod_operator.runtime.claims import Claims
from runtimekit.world import NOW, Kit, sweepcell

PATHS = st.sampled_from(["a", "a/b", "a/b/c", "ab", "b", "/a/", "a//b"])
REPOS = st.sampled_from(["o/r", "O/R", "o/s"])
REVISIONS = st.sampled_from(["main", "dev"])
CHANGES = st.lists(
    st.tuples(st.integers(0, 5), st.booleans(), PATHS, REPOS, REVISIONS, st.integers(0, 3)), min_size=1, max_size=25
)


def claim(raw: dict[str, Any]) -> Claim:
    metadata = raw["metadata"]
    destination = SweepCellSpec.model_validate(raw["spec"]).destination
    return Claim(metadata["name"], metadata["uid"], parse_time(metadata["creationTimestamp"]), destination)


def key(raw: dict[str, Any]) -> tuple[str, str]:
    return raw["metadata"]["namespace"], raw["metadata"]["name"]


def rivals(raws: Iterable[dict[str, Any]]) -> dict[tuple[str, str], str | None]:
    """What the decision says over every cell."""
    held = list(raws)
    return {key(raw): overlapping(claim(raw), [claim(other) for other in held]) for raw in held}


@settings(max_examples=150, deadline=None)
@given(CHANGES)
def test_after_any_changes_the_index_says_what_the_decision_over_all_cells_says(changes):
    index, held = Claims(), {}
    for turn, (number, there, path, repo, revision, minute) in enumerate(changes):
        raw = sweepcell(
            f"c{number}",
            namespace=f"ns{number % 2}",
            uid=f"uid-{number}-{turn}",
            created=NOW + timedelta(minutes=minute),
            path=path,
            repo=repo,
            revision=revision,
        )
        before = rivals(held.values())
        held.pop(key(raw), None)
        if there:
            held[key(raw)] = raw
        woken = index.changed(key(raw), raw if there else None)
        after = rivals(held.values())
        assert {k: index.rival(k) for k in held} == after
        freed = {k for k in after if before.get(k) is not None and after[k] is None and k != key(raw)}
        assert {held[k]["metadata"]["uid"] for k in freed} <= woken, "who may go on now is woken"
    for gone in list(held):
        index.changed(gone, None)
    assert (index._claims, index._written, index._trees) == ({}, {}, {})


def test_a_status_that_is_written_parses_nothing_and_wakes_nobody():
    index = Claims()
    old, young = sweepcell("a", path="x"), sweepcell("b", path="x", created=NOW + timedelta(hours=1))
    index.changed(key(old), old)
    index.changed(key(young), young)
    parsed = index._claims[key(old)]
    assert index.changed(key(old), {**old, "status": {"phase": "Verified"}}) == frozenset()
    assert index._claims[key(old)] is parsed
    assert index.rival(key(young)) == "a"


def test_a_pass_of_one_cell_among_many_looks_at_its_own_branch():
    index = Claims()
    for number in range(500):
        raw = sweepcell(f"c{number}", path=f"sweep/{number}")
        index.changed(key(raw), raw)
    assert list(index._near(index._claims["ns", "c7"])) == [("ns", "c7")]


def test_a_cell_that_goes_wakes_its_gpupod_and_who_waited_for_its_destination():
    kit = Kit()
    pod = kit.world.slots.open(("ns", "p"), "uid-p")
    young = kit.world.cell_slots.open(("ns", "b"), "uid-b")
    old = sweepcell("a", path="x")
    for raw in (old, sweepcell("b", pod="q", path="x/y", created=NOW + timedelta(hours=1))):
        kit.world.store.put(SWEEPCELLS, raw)
    assert kit.world.claims.rival(("ns", "b")) == "a"
    assert pod.wake.is_set(), "a new cell is work for its pod"
    pod.wake.clear()
    young.wake.clear()
    kit.world.store.put(SWEEPCELLS, {**old, "metadata": old["metadata"] | {"resourceVersion": "7"}})
    assert pod.wake.is_set(), "so is a changed one"
    assert not young.wake.is_set()
    pod.wake.clear()
    kit.world.store.remove(SWEEPCELLS, ("ns", "a"), "uid-a")
    assert pod.wake.is_set(), "and one that is gone"
    assert young.wake.is_set()
    assert kit.world.claims.rival(("ns", "b")) is None
    assert kit.world.store.cells_of(("ns", "p")) == []
