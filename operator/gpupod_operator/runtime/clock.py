"""The wall clock of a running operator."""

from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """Time as the machine has it, UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)
