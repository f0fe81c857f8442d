"""The request log behind `/_sim/requests`. It holds key aliases, never keys."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass
from datetime import datetime

_KEEP = 20_000


@dataclass(slots=True)
class Entry:
    """One request. `pod` is the pod it was about, or that it made; `fault` is what was played on it."""

    at: datetime
    method: str
    path: str
    query: str
    status: int
    key: str | None
    pod: str | None
    request_id: str
    fault: str | None = None

    def view(self) -> dict[str, object]:
        """The entry as JSON."""
        return {**asdict(self), "at": self.at.isoformat()}


class Journal:
    """The last requests, oldest first."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque(maxlen=_KEEP)

    def add(self, entry: Entry) -> None:
        """Append one request."""
        self.entries.append(entry)

    def mutations(self) -> list[Entry]:
        """Requests that asked for a change."""
        return [entry for entry in self.entries if entry.method not in {"GET", "HEAD", "OPTIONS"}]
