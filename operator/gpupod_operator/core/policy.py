"""The operator's own timings (the object's are in its spec)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Policy:
    """Numbers come from the vendor's observed behaviour; flags of `gpupod-operator run` set them."""

    observe_every: timedelta = timedelta(seconds=15)
    """One list call per account per tick: 5,760 calls a day of the 50,000 that the documented policy allows."""
    visit_every: timedelta = timedelta(seconds=30)
    """How often a pod is visited over SSH while nothing is wrong."""
    create_settle: timedelta = timedelta(seconds=60)
    """An ambiguous create is looked for on complete lists for at least this long (lists lag up to a minute)."""
    fresh_grace: timedelta = timedelta(seconds=60)
    """A pod just created may answer 404 (up to 30 s) and be missing from lists: still ours, never "gone"."""
    order_patience_least: timedelta = timedelta(seconds=30)
    lists_for_gone: int = 2
    """Complete lists in a row without the id, beside a GET 404, that prove a pod gone."""
    backoff_first: timedelta = timedelta(seconds=30)
    backoff_max: timedelta = timedelta(minutes=10)
    unreachable_alert: timedelta = timedelta(hours=1)
    timer_grace: timedelta = timedelta(minutes=10)
    """From the end of `ttl` until the pod stops itself: a living operator, or its standby, ends the pod before."""
    approval_ttl: timedelta = timedelta(hours=24)
    recheck: timedelta = timedelta(seconds=60)
    """How soon a waiting object looks again by itself."""
    image_keep: int = 3

    @property
    def order_patience(self) -> timedelta:
        """How long a stop or delete that was ordered may go without showing before it is ordered again: four lists."""
        return max(4 * self.observe_every, self.order_patience_least)
