"""The harness finds what it is made to find: operators with one law taken out of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from chaoskit.points import Mishap
from chaoskit.schedule import Fault, Schedule, play
from gpupod_operator.core.gpupod import decide
from gpupod_operator.core.gpupod.scope import Release
from gpupod_operator.runtime import loop


def broken_somewhere(operation: str, promise: str, *faults: Fault) -> bool:
    """Whether a kill at one of its points breaks this promise; the points are tried until one does."""
    points = len(play(Schedule(operation)).points)
    played = (play(Schedule(operation, {n: Mishap.KILL}, faults)) for n in range(points))
    return any(sentence.startswith(promise) for p in played for sentence in p.broken)


def test_an_operator_that_does_not_look_for_its_pods_makes_two(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(decide, "reconcile_identity", lambda scope: None)
    monkeypatch.setattr(decide, "settle_unknown_create", lambda scope: None)
    assert broken_somewhere("create", "I1:")


def test_an_operator_that_lets_go_before_the_proof_leaks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(decide, "tear_down", lambda scope: Release("it was asked for"))
    assert "I2:" in "".join(play(Schedule("teardown")).broken)


def test_an_operator_that_acts_before_its_intent_is_written_is_found(monkeypatch: pytest.MonkeyPatch):
    written = loop._commit

    async def late(world, slot, raw, before, after):
        attempt = after.attempt
        if attempt is not None and attempt.intent == "Create" and attempt.pod_id is None:
            return raw
        return await written(world, slot, raw, before, after)

    monkeypatch.setattr(loop, "_commit", late)
    assert broken_somewhere("create", "I1:", Fault("list-lag"))


def test_an_error_in_a_pass_is_a_broken_promise(monkeypatch: pytest.MonkeyPatch):
    def mistaken(scope):
        raise ZeroDivisionError

    monkeypatch.setattr(decide, "check_drift", mistaken)
    assert any("ZeroDivisionError" in sentence for sentence in play(Schedule("stopped-outside")).broken)


def test_a_schedule_is_played_again_from_its_command_line():
    tests = Path(__file__).parents[1]
    words = [sys.executable, "-m", "chaoskit", "create", "--at", "20:kill", "--fault", "list-lag", "--points"]
    done = subprocess.run(words, cwd=tests, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "20 " in done.stdout
    assert "deaths 1" in done.stdout
    assert play(Schedule("create", {20: Mishap.KILL}, (Fault("list-lag"),))).story in done.stdout
