"""A failed write of pods.conf is repeated soon, and told to the objects when it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from gpupod_operator.cluster.pods_conf_writer import PodsConfWriter
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable
from runtimekit.cluster import MemoryCluster

pytestmark = pytest.mark.looptime

MAPS = {"pods-conf": {"pods.conf": "row\n"}}


class Desk:
    """A running writer, what it told, and how often it tried."""

    def __init__(self, maps: dict[str, dict[str, str]] | None = None) -> None:
        self.cluster = MemoryCluster()
        self.told: list[tuple[str, str | None]] = []
        self.maps = MAPS if maps is None else maps
        self.writer = PodsConfWriter(
            cast("Any", self.cluster),
            lambda _: self.maps,
            on_result=lambda namespace, result: self.told.append((namespace, result.problem)),
        )

    def fail(self, error: Exception) -> None:
        self.cluster.down["config"] = error

    def heal(self) -> None:
        self.cluster.down.clear()

    def written(self, namespace: str = "ns") -> bool:
        return (namespace, "pods-conf") in self.cluster.configs

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        stop = asyncio.Event()
        task = asyncio.create_task(self.writer.run(stop))
        yield
        stop.set()
        await task


@pytest.mark.parametrize(
    "error", [ApiUnavailable("cut"), ApiConflict("409"), ApiForbidden("starting"), ApiNotFound("starting")]
)
async def test_one_failure_is_repeated_within_seconds_and_told_to_nobody(error: Exception):
    desk = Desk()
    async with desk.running():
        desk.writer.mark("ns")
        desk.fail(error)
        await asyncio.sleep(1)
        desk.heal()
        await asyncio.sleep(2)
        assert desk.written()
    assert desk.told == [("ns", None)]


async def test_a_failure_that_goes_on_is_told_once_whatever_its_words_and_once_when_it_is_over():
    desk = Desk()
    async with desk.running():
        desk.writer.mark("ns")
        for second in range(300):
            desk.fail(ApiUnavailable(f"no answer within {second} s"))
            desk.writer.mark("ns")
            await asyncio.sleep(1)
        assert len(desk.told) == 1
        assert "could not be written" in (desk.told[0][1] or "")
        tries = len(desk.cluster.asked)
        assert tries < 12, "marks do not break the pauses"
        desk.heal()
        await asyncio.sleep(61)
    assert desk.told[1:] == [("ns", None)]
    assert desk.written()


async def test_failures_that_take_their_whole_timeout_are_told_by_the_clock():
    desk = Desk()
    slow = desk.cluster.read_config

    async def waits(namespace: str, name: str) -> dict[str, Any] | None:
        await asyncio.sleep(29)
        return await slow(namespace, name)

    desk.cluster.read_config = waits  # type: ignore[method-assign]
    desk.fail(ApiUnavailable("timeout"))
    async with desk.running():
        desk.writer.mark("ns")
        await asyncio.sleep(62)
        assert len(desk.told) == 1, "the second failure, 31 s after the first"


async def test_another_kind_of_failure_is_told_when_it_lasts_too():
    desk = Desk()
    async with desk.running():
        desk.writer.mark("ns")
        desk.fail(ApiUnavailable("cut"))
        await asyncio.sleep(60)
        desk.fail(ApiForbidden("no right to patch configmaps"))
        await asyncio.sleep(240)
    assert len(desk.told) == 2
    assert "no right" in (desk.told[1][1] or "")


@pytest.mark.parametrize("what", ["invalid", "of somebody else"])
async def test_what_no_repetition_can_help_is_told_at_once(what: str):
    desk = Desk()
    if what == "invalid":
        desk.fail(ApiInvalid("too large"))
    else:
        desk.cluster.configs["ns", "pods-conf"] = {"metadata": {}, "data": {"k": "theirs"}}
    async with desk.running():
        desk.writer.mark("ns")
        await asyncio.sleep(1)
        assert len(desk.told) == 1
        assert desk.told[0][1] is not None


async def test_a_namespace_that_fails_holds_no_other_up():
    desk = Desk()
    desk.cluster.rights = {"good"}
    async with desk.running():
        desk.writer.mark("bad")
        desk.writer.mark("good")
        await asyncio.sleep(1)
        assert desk.written("good")
        assert desk.told == [("good", None)]


async def test_the_last_row_is_taken_away_also_when_the_first_try_fails():
    desk = Desk(maps={})
    desk.cluster.configs["ns", "pods-conf"] = {
        "metadata": {"labels": {"app.kubernetes.io/managed-by": "gpupod-operator"}},
        "data": {"pods.conf": "row of a pod that is gone\n"},
    }
    async with desk.running():
        desk.writer.mark("ns")
        desk.fail(ApiUnavailable("cut"))
        await asyncio.sleep(1)
        desk.heal()
        await asyncio.sleep(2)
        assert not desk.written()


async def test_a_namespace_that_is_gone_is_given_up():
    desk = Desk()
    desk.fail(ApiNotFound("namespaces ns"))
    async with desk.running():
        desk.writer.mark("ns")
        await asyncio.sleep(30)
        tries = len(desk.cluster.asked)
        await asyncio.sleep(600)
        assert len(desk.cluster.asked) == tries
    assert desk.told == [("ns", "namespace ns is gone")]


async def test_a_hand_edit_is_undone_also_while_others_change_all_the_time():
    desk = Desk()
    async with desk.running():
        desk.writer.mark("ns")
        await asyncio.sleep(1)
        desk.cluster.configs["ns", "pods-conf"]["data"] = {"pods.conf": "mine"}
        for _ in range(70):
            desk.writer.mark("other")
            await asyncio.sleep(1)
        assert desk.cluster.configs["ns", "pods-conf"]["data"] == {"pods.conf": "row\n"}
