"""How many events one object may make."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gpupod_operator.cluster.events import BURST, REFILL_SECONDS, REPEAT_SECONDS, EventPoster
from gpupod_operator.ports import ApiUnavailable


class FixedClock:
    def now(self) -> datetime:
        return datetime(2026, 12, 1, 8, tzinfo=UTC)


class Bench:
    """A poster, its clock in seconds, and what reached the wire."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.down = False
        self.sent: list[dict[str, Any]] = []
        self.dropped: list[str] = []
        self.poster = EventPoster(
            FixedClock(),
            controller="c",
            instance="i",
            monotonic=lambda: self.seconds,
            on_dropped=self.dropped.append,
        )

    async def write(self, method: str, path: str, *, body: Any) -> dict[str, Any]:
        if self.down:
            raise ApiUnavailable("down")
        self.sent.append(body)
        return {}

    async def say(self, note: str, uid: str = "u") -> None:
        obj = {"apiVersion": "gpupod.dev/v1alpha1", "metadata": {"name": "p", "namespace": "n", "uid": uid}}
        await self.poster.post(self.write, obj, kind="GpuPod", reason="R", message=note, warning=False, action="A")


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_flood_of_one_object_is_held_back_and_does_not_silence_another(bench: Bench):
    for n in range(BURST + 10):
        await bench.say(str(n))
    assert len(bench.sent) == BURST
    assert bench.dropped == ["Flood"] * 10
    await bench.say("x", uid="other")
    assert len(bench.sent) == BURST + 1


async def test_budget_refills_with_time(bench: Bench):
    for n in range(BURST):
        await bench.say(str(n))
    bench.seconds += REFILL_SECONDS - 1
    await bench.say("early")
    bench.seconds += 1
    await bench.say("late")
    assert [e["note"] for e in bench.sent[BURST:]] == ["late"]


async def test_same_sentence_is_said_again_after_a_while(bench: Bench):
    await bench.say("x")
    await bench.say("x")
    assert bench.dropped == ["Repeated"]
    bench.seconds += REPEAT_SECONDS
    await bench.say("x")
    assert len(bench.sent) == 2


async def test_event_that_was_not_written_may_be_tried_again(bench: Bench):
    bench.down = True
    with pytest.raises(ApiUnavailable):
        await bench.say("x")
    bench.down = False
    await bench.say("x")
    assert [e["note"] for e in bench.sent] == ["x"]


async def test_note_is_cut_in_bytes_and_never_within_a_character(bench: Bench):
    await bench.say("€" * 1000)
    note = bench.sent[0]["note"]
    assert len(note.encode()) <= 1024
    assert note == "€" * 340 + "..."


async def test_names_of_events_are_valid_and_unique(bench: Bench):
    for n in range(3):
        await bench.say(str(n))
    names = {e["metadata"]["name"] for e in bench.sent}
    assert len(names) == 3
    assert all(len(n) <= 253 for n in names)
    assert bench.sent[0]["eventTime"] == "2026-12-01T08:00:00.000000Z"
