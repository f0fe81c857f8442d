"""Who paid for what: money per second, for running pods, stopped disks and network volumes.

Storage prices are RunPod's list: $0.10 a GB and month for container and running volume disk, $0.20 for a stopped
volume, $0.07 for a network volume up to 1 TB and $0.05 above. A month is 730 hours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

_HOURS_A_MONTH = Decimal(730)
_SECONDS_AN_HOUR = Decimal(3600)
_CONTAINER_GB = Decimal("0.10")
_VOLUME_GB_RUNNING = Decimal("0.10")
_VOLUME_GB_STOPPED = Decimal("0.20")
_NETWORK_GB = Decimal("0.07")
_NETWORK_GB_ABOVE_1TB = Decimal("0.05")


class Meter(StrEnum):
    """What a segment of the ledger was spent on."""

    RUNNING = "running"
    STOPPED = "stopped"
    NETWORK_VOLUME = "network-volume"


@dataclass(slots=True)
class Segment:
    """A stretch of time at constant rates, in USD an hour. `end` is None while the meter runs."""

    account: str
    subject: str
    meter: Meter
    begin: datetime
    compute: Decimal
    disk: Decimal
    end: datetime | None = None

    def seconds(self, since: datetime, until: datetime) -> Decimal:
        """Seconds of this segment inside a window."""
        begin = max(self.begin, since)
        end = min(self.end or until, until)
        return max(Decimal(0), Decimal(str((end - begin).total_seconds())))


@dataclass(slots=True)
class Ledger:
    """Every segment ever metered. `factor` bills that many seconds for each that passes."""

    factor: Decimal = Decimal(1)
    segments: list[Segment] = field(default_factory=list)
    _open: dict[str, Segment] = field(default_factory=dict)

    def meter(self, account: str, subject: str, meter: Meter, at: datetime, compute: Decimal, disk: Decimal) -> None:
        """Close what runs for `subject` and open a segment at new rates."""
        self.close(subject, at)
        segment = Segment(account, subject, meter, at, compute, disk)
        self.segments.append(segment)
        self._open[subject] = segment

    def close(self, subject: str, at: datetime) -> None:
        """Stop the meter of `subject`, if one runs."""
        segment = self._open.pop(subject, None)
        if segment is not None:
            segment.end = at

    def spent(self, now: datetime, *, account: str | None = None, subject: str | None = None) -> Decimal:
        """USD billed until `now`, exact, for one account or one pod or volume."""
        amounts = (self.amounts(segment, segment.begin, now) for segment in self._of(account, subject))
        return sum((compute + disk for compute, disk in amounts), Decimal(0))

    def seconds(self, subject: str, meter: Meter, now: datetime) -> Decimal:
        """Seconds that `subject` spent on one meter, before the billing factor."""
        return sum(
            (item.seconds(item.begin, now) for item in self._of(None, subject) if item.meter is meter), Decimal(0)
        )

    def rate(self, account: str) -> Decimal:
        """What the account pays an hour at this moment."""
        return sum((item.compute + item.disk for item in self._open.values() if item.account == account), Decimal(0))

    def running_compute(self, account: str) -> Decimal:
        """What the account pays an hour for running pods, without storage."""
        return sum((item.compute for item in self._open.values() if item.account == account), Decimal(0))

    def amounts(self, segment: Segment, since: datetime, until: datetime) -> tuple[Decimal, Decimal]:
        """USD for compute and for disk of one segment inside a window."""
        hours = segment.seconds(since, until) * self.factor / _SECONDS_AN_HOUR
        return hours * segment.compute, hours * segment.disk

    def _of(self, account: str | None, subject: str | None) -> Iterable[Segment]:
        return (
            item
            for item in self.segments
            if (account is None or item.account == account) and (subject is None or item.subject == subject)
        )


def running_disk_rate(container_gb: int, volume_gb: int) -> Decimal:
    """USD an hour for the disks of a running pod."""
    return (container_gb * _CONTAINER_GB + volume_gb * _VOLUME_GB_RUNNING) / _HOURS_A_MONTH


def stopped_disk_rate(volume_gb: int) -> Decimal:
    """USD an hour for the volume disk that a stopped pod keeps; its container disk is gone and free."""
    return volume_gb * _VOLUME_GB_STOPPED / _HOURS_A_MONTH


def network_volume_rate(size_gb: int) -> Decimal:
    """USD an hour for a network volume, pod or no pod."""
    base, above = min(size_gb, 1000), max(0, size_gb - 1000)
    return (base * _NETWORK_GB + above * _NETWORK_GB_ABOVE_1TB) / _HOURS_A_MONTH
