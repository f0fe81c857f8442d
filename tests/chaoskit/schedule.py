"""A schedule: an operation, where its operator dies, and what the vendor does meanwhile. Played, and judged."""

from __future__ import annotations

import logging
import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import looptime

from chaoskit.clock import START
from chaoskit.judge import judged
from chaoskit.operations import OPERATIONS
from chaoskit.points import OF_THE_WATCH, Mishap
from chaoskit.scene import Scene, Unfinished
from gpupod_rehearsal.runpod.faults import Target

FAULTS = (
    "create-then-500",
    "create-then-drop",
    "create-then-garbage",
    "post-create-404",
    "list-lag",
    "truncated-page",
    "repeated-cursor",
    "empty-list",
    "duplicate-ids",
    "rate-limited",
    "html-502",
    "http-500",
    "cloudflare-1010",
    "drop",
    "answer-lost",
    "runtime-null-flicker",
    "delete-lingers",
)
"""Those after which every operation still ends well by itself. The answer table has the others."""
LASTING = {
    "list-lag": 120.0,
    "delete-lingers": 120.0,
    "unknown-status": 90.0,
    "missing-fields": 90.0,
    "unknown-fields": 90.0,
    "no-capacity": 90.0,
}
WINDOWS = {"second": 1, "minute": 30, "hour": 1200}
"""Seconds until a window of the vendor's quota opens again."""
KINDS = (*(4 * [Mishap.KILL]), Mishap.OUTAGE, Mishap.CONFLICT, Mishap.LOST, *OF_THE_WATCH)
QUIET = timedelta(minutes=3)
"""After an operation is done: what comes later must not undo it."""


@dataclass(frozen=True)
class Fault:
    """A fault of the simulated vendor, at any request or at those of one kind (`path` may have wildcards).

    A name with `=` says more: `http-500=409` is answered 409, `rate-limited=hour` closes the window of an hour.
    """

    name: str
    method: str | None = None
    path: str | None = None
    seconds: float | None = None
    """How long it goes on; None: as often as is usual for it, mostly once."""

    def arm(self, scene: Scene) -> None:
        duration = self.seconds or (LASTING.get(self.name))
        more: dict[str, Any] = {"duration": duration, "count": -1} if duration is not None else {}
        name, _, detail = self.name.partition("=")
        if detail:
            more |= {"window": detail, "seconds": WINDOWS[detail]} if detail in WINDOWS else {"status": int(detail)}
        scene.sim.faults.add(name, target=Target(method=self.method, path=self.path), **more)

    def __str__(self) -> str:
        where = f"@{self.method}:{self.path}" if self.path else ""
        return self.name + where + (f"~{self.seconds:g}" if self.seconds else "")

    @classmethod
    def of(cls, text: str) -> Fault:
        """From the form that a command line has."""
        text, _, seconds = text.partition("~")
        name, _, where = text.partition("@")
        method, _, path = where.partition(":")
        return cls(name, method or None, path or None, float(seconds) if seconds else None)


@dataclass(frozen=True)
class Schedule:
    """`mishaps` are by number of the point; faults are armed right before the operation is set off."""

    operation: str
    mishaps: Mapping[int, Mishap] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    skew: float = 0.0
    """Seconds by which the operator's clock is ahead from the start."""
    jump: float = 0.0
    """Seconds by which it jumps, half a minute into the operation."""

    @property
    def command(self) -> str:
        """How a person plays it again."""
        words = [
            self.operation,
            *(f"--at {n}:{m}" for n, m in sorted(self.mishaps.items())),
            *(f"--fault {f}" for f in self.faults),
            *((f"--skew {self.skew:g}",) if self.skew else ()),
            *((f"--jump {self.jump:g}",) if self.jump else ()),
        ]
        return f"python -m chaoskit {' '.join(words)} --seed {self.seed}"


@dataclass(frozen=True)
class Played:
    """`broken` are sentences; `points` the names of the crash points in order; `cost` in USD; `deaths` of operators."""

    schedule: Schedule
    broken: tuple[str, ...]
    points: tuple[str, ...]
    cost: Decimal
    deaths: int
    story: str
    hits: int
    """How often the vendor played a fault."""
    length: timedelta
    """Virtual time from begin to end."""

    def __str__(self) -> str:
        return "\n".join([*self.broken, self.schedule.command, self.story])


def play(schedule: Schedule) -> Played:
    """On a fresh loop of virtual time."""
    loop = looptime.new_event_loop(start=0)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return loop.run_until_complete(_play(schedule, Path(folder)))
    finally:
        loop.close()


def drawn(seed: int, points: dict[str, int], faults: bool = True) -> Schedule:
    """The schedule of a seed. `points` says how many points each operation has without crashes."""
    dice = random.Random(seed)
    operation = dice.choice(sorted(points))
    most = points[operation]
    # the first strikes within the plain run, the later ones anywhere in what follows
    count = dice.choice((0, 1, 1, 2, 2, 3)) if faults else dice.choice((2, 2, 3, 4))
    where = [dice.randrange(most if n == 0 else 2 * most) for n in range(count)]
    mishaps = {point: dice.choice(KINDS) for point in where}
    chosen = dice.sample(FAULTS, dice.choice((1, 1, 2))) if faults else []
    return Schedule(operation, mishaps, tuple(map(Fault, chosen)), seed)


async def _play(schedule: Schedule, folder: Path) -> Played:
    operation = OPERATIONS[schedule.operation]
    heard = _Errors()
    async with Scene(folder, schedule.seed) as scene:
        scene.own.skew = timedelta(seconds=schedule.skew)
        log = logging.getLogger("gpupod_operator")
        log.addHandler(heard)
        broken: list[str] = []
        try:
            await operation.prepare(scene)
            scene.points.arm(schedule.mishaps)
            for fault in schedule.faults:
                fault.arm(scene)
            await operation.act(scene)
            if schedule.jump:
                await scene.pause(timedelta(seconds=30))
                scene.own.skew += timedelta(seconds=schedule.jump)
                scene.books.blind = True  # an hour that was not is an hour too much or too little in any book
            # what is to be done at a moment is done an hour later by a clock that was put back by one
            late = timedelta(seconds=max(-schedule.skew, -schedule.jump, 0.0))
            await scene.until(lambda: operation.done(scene), operation.within + late)
            scene.points.armed = False
            await scene.pause(QUIET)
            await scene.until(lambda: operation.done(scene), timedelta(minutes=10))
        except Unfinished:
            broken.append("it never ended as it should")
        finally:
            log.removeHandler(heard)
        await scene.sim.catch_up()
        scene.books.close()
        broken += [*judged(scene, operation, faulty=bool(schedule.faults)), *heard.said]
        hits = sum(rule.hits for rule in scene.sim.faults.rules)
        cost = scene.sim.cloud.ledger.spent(scene.sim.cloud.now)
        return Played(
            schedule,
            tuple(broken),
            tuple(scene.points.names),
            cost,
            scene.deaths,
            scene.story(),
            hits,
            scene.clock.now() - START,
        )


class _Errors(logging.Handler):
    """An operator that logs an error has met something that it was not made for."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {record.exc_info[1]!r}"
        self.said.append(f"logged as an error: {text}")


def run(*schedules: Schedule) -> list[Played]:
    """Those that broke something."""
    return [played for played in map(play, schedules) if played.broken]


__all__ = ["FAULTS", "Played", "Schedule", "drawn", "play", "run"]
