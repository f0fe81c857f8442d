"""The vendor's request quota: three windows per account, told in headers on every authenticated answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime

#: Quota per window of (name, seconds). Larger than the documented example, as a live trace showed.
DEFAULT_QUOTAS = {"minute": 240, "hour": 9_000, "day": 150_000}
_LENGTHS = {"minute": 60, "hour": 3_600, "day": 86_400}


@dataclass(slots=True)
class _Window:
    began: datetime
    used: int = 0


@dataclass(slots=True)
class Quota:
    """The windows of one account. Without `enforced` calls are counted but none is refused."""

    quotas: dict[str, int] = field(default_factory=lambda: dict(DEFAULT_QUOTAS))
    enforced: bool = False
    _windows: dict[str, _Window] = field(default_factory=dict)

    def take(self, now: datetime) -> str | None:
        """Count one call. Returns the name of the window that refuses it, and then counts nothing."""
        for name in self.quotas:
            window = self._windows.get(name)
            if window is None or (now - window.began).total_seconds() >= _LENGTHS[name]:
                self._windows[name] = _Window(now)
        if self.enforced:
            for name, quota in self.quotas.items():
                if self._windows[name].used >= quota:
                    return name
        for name in self.quotas:
            self._windows[name].used += 1
        return None

    def headers(self, now: datetime, empty: dict[str, float] | None = None) -> dict[str, str]:
        """`RateLimit` and `RateLimit-Policy`; windows in `empty` are shown with nothing left for that many seconds."""
        live = []
        for name, quota in self.quotas.items():
            window = self._windows.get(name)
            left = max(0 if self.enforced else 1, quota - (window.used if window else 0))
            resets = self.resets_in(name, now)
            if empty and name in empty:
                left, resets = 0, math.ceil(empty[name])
            live.append(f'"{name}";r={left};t={resets}')
        policy = ", ".join(f'"{name}";q={quota};w={_LENGTHS[name]}' for name, quota in self.quotas.items())
        return {"RateLimit": ", ".join(live), "RateLimit-Policy": policy}

    def resets_in(self, name: str, now: datetime) -> int:
        """Seconds until a window begins anew, at least 1."""
        window = self._windows.get(name)
        elapsed = (now - window.began).total_seconds() if window else 0
        return max(1, math.ceil(_LENGTHS.get(name, 60) - elapsed))
