"""The measurements, one after another, on one stage."""

import asyncio
import json
import os
import statistics
import sys
import time
from datetime import datetime
from typing import Any

from bench.audit import Request, by_kind
from bench.fleet import Key, Watch, apply_all
from bench.process import Usage, usage
from bench.stage import Stage

Numbers = dict[str, Any]

LONGEST = 900.0
"""Seconds after which a fleet that is not Ready is given up."""
MUTATIONS = {"POST", "PATCH", "PUT", "DELETE"}


def say(sentence: str) -> None:
    """Progress goes to stderr; stdout is the report's."""
    print(f"{time.strftime('%H:%M:%S')} {sentence}", file=sys.stderr, flush=True)


async def measure(stage: Stage, *, idle: float, restart: bool) -> Numbers:
    """Run everything; `idle` in seconds."""
    plan = stage.plan
    numbers: Numbers = {"pods": plan.pods, "namespaces": plan.namespaces, "observe_every_s": plan.observe}
    began = time.monotonic()
    await stage.start_operator()
    await stage.leading()
    numbers["start_to_leading_s"] = time.monotonic() - began
    async with Watch(stage.admin) as watch:
        numbers["idle_apply"] = await _probes(stage, watch)
        numbers["launch"] = await _launch(stage, watch)
        numbers["settle"] = await _settle(stage)
        # events go out behind the work, some of them after the object is Ready
        total = sum(sum(numbers[part]["kubernetes_writes"].values()) for part in ("launch", "settle"))
        numbers["launch"]["kubernetes_writes_per_object"] = total / numbers["launch"]["objects"]
        numbers["idle"] = await _idle(stage, idle)
        if restart:
            numbers["restart"] = await _restart(stage)
    return numbers


async def _probes(stage: Stage, watch: Watch) -> Numbers:
    """Single objects, one after another, while nothing else goes on."""
    say(f"{stage.plan.probes} single objects on an idle operator")
    first, posted, ready = [], [], []
    for number in range(stage.plan.probes):
        key = (stage.namespaces[0], f"probe-{number}")
        await asyncio.sleep(3)  # not right behind a list, after which the observer makes a pause
        seen = len(await stage.calls())
        applied = (await apply_all(stage.admin, [key]))[key]
        await watch.until_ready([key], 120, stage.alive)
        calls = await stage.calls(seen)
        create = next(c for c in calls if c["method"] == "POST" and c["path"] == "/v2/pods")
        first.append(_at(calls[0]) - applied)
        posted.append(_at(create) - applied)
        ready.append(watch.ready[key] - applied)
    return {"first_call_s": _spread(first), "create_call_s": _spread(posted), "ready_s": _spread(ready)}


async def _launch(stage: Stage, watch: Watch) -> Numbers:
    keys: list[Key] = [
        (stage.namespaces[n % len(stage.namespaces)], f"pod-{n:04}") for n in range(stage.plan.pods - stage.plan.probes)
    ]
    say(f"{len(keys)} objects at once")
    stage.audit.new()
    seen = len(await stage.calls())
    before = _usages(stage)
    began = time.time()
    applied = await apply_all(stage.admin, keys)
    all_applied = time.time()
    say(f"applied in {all_applied - began:.1f} s")
    await watch.until_ready(keys, LONGEST, stage.alive)
    ended = max(watch.ready[k] for k in keys)
    say(f"all Ready after {ended - began:.1f} s")
    after = _usages(stage)
    await asyncio.sleep(0.5)  # the audit log is written behind the answers
    requests = stage.audit.new()
    calls = [c for c in await stage.calls(seen) if _at(c) <= ended]
    creates = sorted(_at(c) for c in calls if c["method"] == "POST" and c["path"] == "/v2/pods")
    # the pods' names carry the object's name, which the journal does not keep: order statistics of both sides
    waits = [c - a for a, c in zip(sorted(applied.values()), creates, strict=False)]
    times = sorted(watch.ready[k] - began for k in keys)
    seconds = ended - began
    writes = [r for r in requests if r.writes and not r.renewal]
    return {
        "objects": len(keys),
        "apply_s": all_applied - began,
        "seconds": seconds,
        "ready_per_s": len(keys) / seconds,
        "ready_per_s_once_listed": 0.98 * len(keys) / (times[len(times) * 99 // 100] - times[len(times) // 100]),
        "ready_at_s": {f"p{p}": times[min(len(times) - 1, len(times) * p // 100)] for p in (1, 25, 50, 75, 95, 99)},
        "create_calls_at_s": {"first": creates[0] - began, "last": creates[-1] - began},
        "create_call_after_apply_s": _spread(waits),
        "provider_calls": _by_call(calls),
        "provider_calls_per_min": len(calls) * 60 / seconds,
        "provider_lists": sum(c["method"] == "GET" and c["path"] == "/v2/pods" for c in calls),
        "kubernetes_writes": by_kind(writes),
        "kubernetes_reads": by_kind([r for r in requests if not r.writes and r.verb != "watch"]),
        "cpu_s": {name: after[name].cpu - before[name].cpu for name in after},
        "operator_peak_rss_mb": after["operator"].peak,
        "operator_rss_before_mb": before["operator"].rss,
    }


async def _settle(stage: Stage) -> Numbers:
    """After all are Ready: until nothing was written for two ticks of the observer."""
    began = time.monotonic()
    stage.audit.new()
    quiet = 2 * stage.plan.observe + 2
    writes: list[Request] = []
    last = time.monotonic()
    while time.monotonic() - last < quiet and time.monotonic() - began < LONGEST:
        await asyncio.sleep(1)
        more = [r for r in stage.audit.new() if r.writes and not r.renewal]
        if more:
            writes += more
            last = time.monotonic()
    return {"seconds": last - began, "kubernetes_writes": by_kind(writes)}


async def _idle(stage: Stage, idle: float) -> Numbers:
    say(f"{idle:g} idle seconds")
    stage.audit.new()
    seen = len(await stage.calls())
    before = _usages(stage)
    await asyncio.sleep(idle)
    after = _usages(stage)
    requests, calls = stage.audit.new(), await stage.calls(seen)
    return {
        "seconds": idle,
        "kubernetes_writes": by_kind([r for r in requests if r.writes and not r.renewal]),
        "lease_renewals": sum(r.writes and r.renewal for r in requests),
        "kubernetes_reads": by_kind([r for r in requests if not r.writes]),
        "provider_mutations": sum(c["method"] in MUTATIONS for c in calls),
        "provider_calls_per_min": len(calls) * 60 / idle,
        "provider_calls": _by_call(calls),
        "operator_cpu_percent": 100 * (after["operator"].cpu - before["operator"].cpu) / idle,
        "operator_rss_mb": after["operator"].rss,
        "operator_peak_rss_mb": after["operator"].peak,
    }


async def _restart(stage: Stage) -> Numbers:
    """End the operator in order, start another, until its log tells of a decision on every object."""
    say("restart")
    assert stage.operator is not None
    began = time.monotonic()
    await stage.operator.end()
    stopped = time.monotonic() - began
    stage.audit.new()
    seen = len(await stage.calls())
    began = time.monotonic()
    child = await stage.start_operator()
    async with asyncio.timeout(LONGEST):
        while (told := _told(child.log.read_bytes())) < stage.plan.pods:
            stage.alive()
            await asyncio.sleep(0.1)
    seconds = time.monotonic() - began
    after = usage(child.pid)
    calls = await stage.calls(seen)
    await asyncio.sleep(stage.plan.observe + 1)
    requests = stage.audit.new()
    return {
        "stop_s": stopped,
        "observed_again_s": seconds,
        "objects": told,
        "operator_cpu_s": after.cpu,
        "operator_peak_rss_mb": after.peak,
        "provider_calls": _by_call(calls),
        "kubernetes_writes": by_kind([r for r in requests if r.writes and not r.renewal]),
        "kubernetes_reads": by_kind([r for r in requests if not r.writes]),
    }


def _told(log: bytes) -> int:
    """Objects of which the log says a decision: one line is logged for the first pass of each."""
    whole = (line for line in log.splitlines(keepends=True) if line.startswith(b"{") and line.endswith(b"\n"))
    decisions = (line for line in map(json.loads, whole) if line["logger"] == "gpupod_operator.decisions")
    return len({line["object"] for line in decisions if "object" in line})


def _usages(stage: Stage) -> dict[str, Usage]:
    assert stage.operator is not None
    pids = {
        "operator": stage.operator.pid,
        "provider": stage.vendor.pid,
        "kube-apiserver": stage.plane.apiserver.pid,
        "etcd": stage.plane.etcd.pid,
        "bench": os.getpid(),
    }
    return {name: usage(pid) for name, pid in pids.items() if pid is not None}


def _by_call(calls: list[dict[str, Any]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for call in calls:
        path = "/v2/pods/{id}" if call["pod"] and call["method"] != "POST" else call["path"]
        name = f"{call['method']} {path}" + (f" -> {call['status']}" if call["status"] >= 400 else "")
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _at(call: dict[str, Any]) -> float:
    return datetime.fromisoformat(call["at"]).timestamp()


def _spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "min": ordered[0],
        "median": statistics.median(ordered),
        "p95": ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)],
        "max": ordered[-1],
    }
