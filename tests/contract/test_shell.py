"""The shell against real SSH servers: what it starts, what it reads, and what it does not claim to know."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpupod_operator.core.shell import LaunchRecord, SshClass
from gpupod_operator.ports import LaunchRefused, ShellError
from gpupod_operator.shell import ShellTimeouts, generate_key_pair
from shellkit.server import FAST, PodServer, free_port

pytest_plugins = ["shellkit.fixtures"]


async def _launch(server: PodServer, *command: str, **changes: Any) -> None:
    given: dict[str, Any] = {
        "attempt": "a1",
        "launch_id": "l1",
        "pod_started_at": "2026-12-01T00:00:00Z",
        "command": command,
        "check": (),
        "log_file": None,
    }
    await server.shell().launch(server.target(), server.private, **{**given, **changes})


async def _launches(server: PodServer) -> tuple[LaunchRecord, ...]:
    reading = await server.shell().read(server.target(), server.private)
    assert reading.launches is not None, reading
    return reading.launches


async def _until(what: Callable[[], Any], seconds: float = 20) -> Any:
    async with asyncio.timeout(seconds):
        while True:
            seen = what()
            if asyncio.iscoroutine(seen):
                seen = await seen
            if seen:
                return seen
            await asyncio.sleep(0.05)


async def test_a_first_visit_reports_the_host_key_and_an_empty_pod(server: PodServer) -> None:
    reading = await server.shell().read(server.target(), server.private)
    assert reading.ssh is SshClass.OK, reading.message
    assert reading.host_key == server.host_key
    assert reading.tcp_open is True
    assert reading.launches == ()
    assert reading.agent is not None
    assert reading.agent.running is False


async def test_the_pinned_key_is_accepted_and_another_one_is_told_apart(server: PodServer) -> None:
    assert (await server.shell().read(server.target(server.host_key), server.private)).ssh is SshClass.OK
    other = generate_key_pair()[1]
    reading = await server.shell().read(server.target(other), server.private)
    assert reading.ssh is SshClass.HOST_KEY
    assert reading.host_key == server.host_key
    assert "pinned" in reading.message


async def test_a_wrong_key_is_auth_denied(server: PodServer) -> None:
    reading = await server.shell().read(server.target(), generate_key_pair()[0])
    assert (reading.ssh, reading.tcp_open, reading.launches) == (SshClass.AUTH_DENIED, True, None)


async def test_a_key_that_is_none_is_our_fault_and_is_not_shown(server: PodServer) -> None:
    reading = await server.shell().read(server.target(), "-----BEGIN secretsecret-----")
    assert reading.ssh is SshClass.NO_KEY
    assert "private key cannot be read" in reading.message
    assert "secretsecret" not in reading.message


async def test_levels_below_auth_do_not_log_in(server: PodServer) -> None:
    nobody = replace(server.target(), port=free_port())
    assert (await server.shell().read(nobody, "", level="Mapping")).ssh is SshClass.OK
    assert (await server.shell().read(nobody, "", level="Tcp")).ssh is SshClass.REFUSED
    reading = await server.shell().read(server.target(), "", level="Tcp")
    assert (reading.ssh, reading.tcp_open) == (SshClass.OK, True)


async def test_a_workload_runs_detached_with_its_record_and_its_exit(server: PodServer) -> None:
    await _launch(server, "sh", "-c", "echo working; pwd; exit 3", log_file="logs/out.log")
    (done,) = await _until(lambda: _ended(server))
    assert (done.launch_id, done.attempt, done.exit_code, done.alive) == ("l1", "a1", 3, False)
    assert done.pod_started_at == "2026-12-01T00:00:00Z"
    assert done.pid == done.pgid
    log = Path(server.layout.work) / "logs" / "out.log"
    assert log.read_text().splitlines() == ["working", server.layout.work]
    record = json.loads((server.root / "a1" / "launch.json").read_text())
    assert record["podId"] == "pod1"
    assert record["command"] == ["sh", "-c", "echo working; pwd; exit 3"]


async def test_a_live_launch_is_not_started_twice_under_any_id(server: PodServer) -> None:
    await _launch(server, "sh", "-c", "echo x >> starts; sleep 600")
    await _until(lambda: (Path(server.layout.work) / "starts").exists())
    await _launch(server, "sh", "-c", "echo x >> starts; sleep 600")
    await _launch(server, "sh", "-c", "echo x >> starts; sleep 600", attempt="a2", launch_id="l2")
    (only,) = await _launches(server)
    assert only.alive is True
    assert (Path(server.layout.work) / "starts").read_text() == "x\n"


async def test_a_launch_that_ran_and_ended_is_not_repeated_but_a_new_id_is(server: PodServer) -> None:
    await _launch(server, "sh", "-c", "echo x >> starts")
    await _until(lambda: _ended(server))
    await _launch(server, "sh", "-c", "echo x >> starts")
    assert (Path(server.layout.work) / "starts").read_text() == "x\n"
    await _launch(server, "sh", "-c", "echo y >> starts; sleep 600", launch_id="l2")
    await _until(lambda: (Path(server.layout.work) / "starts").read_text() == "x\ny\n")
    (again,) = await _launches(server)
    assert (again.launch_id, again.alive, again.exit_code) == ("l2", True, None)


async def test_launches_at_the_same_moment_start_one(server: PodServer) -> None:
    both = await asyncio.gather(
        *(_launch(server, "sh", "-c", "echo x >> starts; sleep 600") for _ in range(3)), return_exceptions=True
    )
    assert all(result is None or isinstance(result, ShellError) for result in both)
    await _until(lambda: (Path(server.layout.work) / "starts").exists())
    assert len(await _launches(server)) == 1
    assert (Path(server.layout.work) / "starts").read_text() == "x\n"


async def test_a_pid_given_to_another_process_is_not_alive(server: PodServer) -> None:
    folder = server.root / "a1"
    folder.mkdir(parents=True)
    record = {"attempt": "a1", "launchId": "old", "pid": os.getpid(), "pgid": os.getpid(), "procStart": 1}
    (folder / "launch.json").write_text(json.dumps(record))
    (found,) = await _launches(server)
    assert found.alive is False
    await server.shell().drain(server.target(), server.private, attempt="a1", grace_seconds=1)


async def test_a_record_that_cannot_be_read_is_unknown_and_starts_nothing(server: PodServer) -> None:
    (server.root / "a0").mkdir(parents=True)
    (server.root / "a0" / "launch.json").write_text("{half")
    reading = await server.shell().read(server.target(), server.private)
    assert reading.ssh is SshClass.OK
    assert reading.launches is None
    with pytest.raises(ShellError, match="cannot be read"):
        await _launch(server, "true")
    assert not (server.root / "a1" / "launch.json").exists()


async def test_a_failing_check_refuses_the_launch_with_its_output(server: PodServer) -> None:
    check = ("sh", "-c", "echo no GPU here; echo key hf_abcdefghijkl; exit 9")
    with pytest.raises(LaunchRefused, match="exited with 9: no GPU here") as refused:
        await _launch(server, "true", check=check)
    assert "hf_abc" not in str(refused.value)
    assert await _launches(server) == ()


async def test_a_passing_check_lets_the_launch_through(server: PodServer) -> None:
    await _launch(server, "sleep", "600", check=("test", "-d", server.layout.work))
    assert (await _launches(server))[0].alive is True


async def test_arguments_arrive_as_they_are(server: PodServer) -> None:
    awkward = ["a b", "it's", '"q"', "$HOME", "`id`", "ä\nö", "*", "\\", "{x}", ""]
    script = 'for a in "$@"; do printf "%s|" "$a"; done > args'
    await _launch(server, "sh", "-c", script, "sh", *awkward)
    await _until(lambda: _ended(server))
    assert (Path(server.layout.work) / "args").read_text() == "".join(f"{a}|" for a in awkward)


async def test_drain_ends_the_whole_group_gently_first(server: PodServer) -> None:
    script = "trap 'echo ended > note; exit 0' TERM; sleep 600 & sleep 601 & echo up > up; wait"
    await _launch(server, "sh", "-c", script)
    await _until(lambda: (Path(server.layout.work) / "up").exists())
    await server.shell().drain(server.target(), server.private, attempt="a1", grace_seconds=10)
    assert (Path(server.layout.work) / "note").read_text() == "ended\n"
    (done,) = await _until(lambda: _ended(server))
    assert done.alive is False


async def test_drain_kills_what_does_not_listen(server: PodServer) -> None:
    await _launch(server, "sh", "-c", "trap '' TERM; echo up > up; while :; do sleep 1; done")
    await _until(lambda: (Path(server.layout.work) / "up").exists())
    await server.shell().drain(server.target(), server.private, attempt="a1", grace_seconds=1)
    (done,) = await _until(lambda: _ended(server))
    assert done.exit_code == 128 + signal.SIGKILL


async def test_drain_of_nothing_is_done(server: PodServer) -> None:
    await server.shell().drain(server.target(), server.private, attempt="a1")


async def test_a_workload_survives_the_end_of_its_session(server: PodServer) -> None:
    await _launch(server, "sleep", "600")
    first = await _launches(server)
    second = await _launches(server)
    assert first == second
    assert second[0].alive is True


async def test_cells_are_replaced_whole(server: PodServer) -> None:
    data = json.dumps({"format": 1, "cells": ["x" * 100_000]}).encode()
    await server.shell().write_cells(server.target(), server.private, data)
    assert (server.root / "cells.json").read_bytes() == data
    await server.shell().write_cells(server.target(), server.private, b"{}")
    assert (server.root / "cells.json").read_bytes() == b"{}"


async def test_logs_are_bounded_and_hold_no_credentials(server: PodServer) -> None:
    folder = server.root / "a1"
    folder.mkdir(parents=True)
    lines = [f"line {number} token hf_secretsecret{number:06d} Bearer abcdefghijkl" for number in range(5000)]
    (folder / "workload.log").write_text("\n".join([*lines, "the end"]))
    text = await server.shell().capture_logs(server.target(), server.private, attempt="a1", limit_bytes=20_000)
    assert len(text.encode()) <= 20_000
    assert "the end" in text
    assert "secretsecret" not in text
    assert "abcdefghijkl" not in text


@pytest.mark.parametrize("attempt", ["../x", "agent", "", "a b", "$(id)"])
async def test_an_attempt_that_is_no_plain_word_is_refused_before_any_session(server: PodServer, attempt: str) -> None:
    with pytest.raises(ValueError, match="plain word"):
        await server.shell().drain(server.target(), server.private, attempt=attempt)


async def test_a_command_that_never_ends_is_unknown_in_time(server: PodServer) -> None:
    quick = replace(FAST, command=0.5, check=0.5)
    began = time.monotonic()
    with pytest.raises(ShellError, match="no answer"):
        await server.shell(quick).launch(
            server.target(),
            server.private,
            attempt="a1",
            launch_id="l1",
            pod_started_at="t",
            command=["true"],
            check=["sleep", "600"],
            log_file=None,
        )
    assert time.monotonic() - began < 10


async def _ended(server: PodServer) -> tuple[LaunchRecord, ...] | None:
    found = await _launches(server)
    return found if found and all(launch.exit_code is not None for launch in found) else None


def test_timeouts_are_bounded_by_default() -> None:
    plain = ShellTimeouts()
    assert plain.connect + plain.login <= 30
    assert plain.keepalive * plain.keepalive_count <= 60
