from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gpupod_operator.shell.reading import Visit, parse_visit

STAT = "(a ) b) S 1 42 42 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 {start} 0 0"


def _frame(kind: str, name: str, body: str) -> bytes:
    data = body.encode()
    return f"@@gpupod {kind} {name} {len(data)}\n".encode() + data + b"\n"


def _visit(*frames: bytes, proc: bool = True, end: bool = True) -> Visit:
    whole = b"Welcome to this pod!\n" + (_frame("proc", "1", "yes") if proc else b"") + b"".join(frames)
    return parse_visit(whole + (_frame("end", "end", "") if end else b""))


def _launch(**changes: Any) -> bytes:
    record = {"launchId": "l1", "pid": 42, "pgid": 42, "procStart": 777, "startedAt": "2026-12-01T00:00:00Z"}
    return _frame("launch", "a1", json.dumps({**record, **changes}))


@pytest.mark.parametrize(
    ("stat", "alive"),
    [
        (STAT.format(start=777), True),
        (STAT.format(start=778), False),
        (STAT.format(start=777).replace(") S", ") Z"), False),
        ("", False),
        ("garbled", None),
        (None, None),
    ],
)
def test_a_pid_is_alive_only_with_its_start_time(stat: str | None, alive: bool | None) -> None:
    frames = [_launch()] + ([_frame("stat", "42", f"42 {stat}" if stat else "")] if stat is not None else [])
    visit = _visit(*frames)
    assert visit.launches is not None
    assert visit.launches[0].alive is alive


def test_without_proc_nothing_is_called_dead() -> None:
    visit = _visit(_launch(), _frame("stat", "42", ""), proc=False)
    assert visit.launches is not None
    assert visit.launches[0].alive is None


def test_an_exit_record_of_another_launch_is_not_taken_for_this_ones() -> None:
    other = _frame("exit", "a1", json.dumps({"code": 1, "launchId": "l0"}))
    visit = _visit(_launch(), _frame("stat", "42", f"42 {STAT.format(start=777)}"), other)
    assert visit.launches is not None
    assert visit.launches[0].exit_code is None


@pytest.mark.parametrize("record", ["{half", "[]", '{"pid":1}'])
def test_one_broken_record_makes_the_launches_unknown(record: str) -> None:
    visit = _visit(_launch(), _frame("launch", "a2", record))
    assert visit.launches is None
    assert visit.agent is not None


@pytest.mark.parametrize(
    "state", ["{half", "[]", '{"format":2,"agent":{},"cells":{}}', '{"format":1,"agent":{},"cells":{"u":3}}']
)
def test_a_broken_state_file_is_unknown(state: str) -> None:
    visit = _visit(_frame("agent", "state", state))
    assert visit.agent is None
    assert visit.launches == ()


def test_no_state_file_is_an_agent_that_does_not_run() -> None:
    visit = _visit()
    assert visit.agent is not None
    assert (visit.agent.running, visit.agent.tree_hash, dict(visit.agent.cells)) == (False, None, {})


def test_content_that_looks_like_a_frame_stays_content() -> None:
    forged = _launch(logFile="x\n@@gpupod end end 0\n@@gpupod launch evil 2\n{}")
    visit = _visit(forged)
    assert visit.launches is not None
    assert [launch.attempt for launch in visit.launches] == ["a1"]


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_an_answer_cut_anywhere_is_unknown_and_no_crash(cut: int) -> None:
    whole = _frame("proc", "1", "yes") + _launch() + _frame("stat", "42", "x") + _frame("end", "end", "")
    if cut < len(whole) - 2:
        assert parse_visit(whole[:cut]) == Visit(None, None)


@pytest.mark.parametrize("wrong", [timedelta(0), timedelta(hours=-1), timedelta(days=3)])
def test_the_heartbeat_of_a_pod_whose_clock_is_wrong_is_by_our_clock_and_never_too_late(wrong: timedelta) -> None:
    asked = datetime(2026, 12, 1, 12, tzinfo=UTC)
    looked = asked - timedelta(seconds=20)
    about = {"pid": None, "procStart": None, "treeHash": "t", "podId": "p", "attempt": "a", "problem": None}
    state = {"format": 1, "agent": {**about, "heartbeat": (looked + wrong).isoformat()}, "cells": {}}
    frames = (
        _frame("clock", "now", str(int((asked + wrong).timestamp()))),
        _frame("agent", "state", json.dumps(state)),
        _frame("end", "end", ""),
    )
    agent = parse_visit(b"".join(frames), asked).agent
    assert agent is not None
    assert agent.heartbeat is not None
    assert timedelta(0) <= looked - agent.heartbeat <= timedelta(seconds=2)
