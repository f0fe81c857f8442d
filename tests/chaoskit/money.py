"""Money in status against the vendor's own books, at each version of each object and at the end."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gpupod_operator.api.names import GPUPODS
from gpupod_operator.api.times import parse_time

if TYPE_CHECKING:
    from chaoskit.scene import Scene

GRAIN = Decimal("0.002")
"""USD: four places in status, and the vendor's own rounding of a price."""


class Books:
    """`broken` are the sentences of what was wrong; `over` is the most that was told beyond what was billed."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._worst: dict[str, Decimal | None] = {}
        """By uid: `maxBurn` of the version before this one."""
        self.broken: list[str] = []
        self.over = timedelta(0)
        """In time at the price of the pods."""
        self.looks = 0
        self.blind = False
        scene.cluster.listen(self._look)

    def close(self) -> None:
        """The last look: what stands in the objects now must hold now, whatever had to be found out meanwhile."""
        for raw in self._scene.cluster.objects[GPUPODS].values():
            self._look(GPUPODS, "LAST", raw)

    def billed(self, uid: str) -> Decimal:
        """USD of all pods that were ever made for the object."""
        scene = self._scene
        now = scene.clock.now()
        pods = [p.id for p in scene.pods() if (p.owner or "").endswith(f"/{uid}")]
        return sum((scene.sim.cloud.ledger.spent(now, subject=p) for p in pods), Decimal(0))

    def _look(self, plural: str, kind: str, raw: dict[str, Any]) -> None:
        if plural != GPUPODS or self.blind or self._scene.cluster.restored:
            return  # a status from before its pods knows nothing of their money
        uid, cost = raw["metadata"]["uid"], (raw.get("status") or {}).get("cost")
        billed, now = self.billed(uid), self._scene.clock.now()
        worst = self._worst.get(uid)
        if worst is not None and billed > worst + GRAIN:
            self.broken.append(f"I6 at {now:%H:%M:%S}: ${billed:.4f} billed, maxBurn was ${worst}")
        self._worst[uid] = Decimal(cost["maxBurn"]) if cost and cost.get("maxBurn") is not None else None
        if cost is None or kind == "DELETED" or not billed:
            return
        now = self._scene.own.now()
        if kind != "LAST" and not self._knows_its_pods(raw["status"].get("attempt") or {}):
            return
        self.looks += 1
        self._compare(told(cost, now), billed, now, uid)

    def _knows_its_pods(self, attempt: dict[str, Any]) -> bool:
        """No create is open, and none that was given up may still show a pod."""
        late = attempt.get("mayLandUntil")
        may_land = late is not None and parse_time(late) > self._scene.own.now()
        return bool(attempt.get("podId")) and not attempt.get("unknownSince") and not may_land

    def _compare(self, told_now: Decimal, billed: Decimal, now: datetime, uid: str) -> None:
        if told_now + GRAIN < billed:
            self.broken.append(f"money at {now:%H:%M:%S}: ${told_now:.4f} in status, ${billed:.4f} billed")
        prices = [p.price for p in self._scene.pods() if (p.owner or "").endswith(f"/{uid}")]
        over = max(told_now - billed - GRAIN, Decimal(0)) / max(prices)
        self.over = max(self.over, timedelta(hours=float(over)))


def told(cost: dict[str, Any], now: datetime) -> Decimal:
    """USD that a reader of the status adds up at a moment."""
    hours = Decimal(str((now - parse_time(cost["since"])).total_seconds())) / 3600
    return Decimal(cost["accruedAtSince"]) + Decimal(cost["perHour"]) * hours
