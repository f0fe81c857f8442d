"""I7: the row of a pod that may be running never vanishes because something is unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from worldkit.recorder import Sighting


def vanished(sightings: list[Sighting]) -> Iterator[str]:
    """Every endpoint that was given up on no knowledge, and every row that went while its endpoint stood."""
    seen = [s for s in sightings if s.objects is not None]
    for before, after in pairwise(seen):
        for uid, one in (before.objects or {}).items():
            other = (after.objects or {}).get(uid)
            if other is not None and _given_up(one, other):
                yield f"I7: {_name(one)} lost its endpoint at {after.at:%H:%M:%S} while the vendor was not observed"
    for before, after, later in zip(seen, seen[1:], seen[2:], strict=False):
        for uid, one in (before.objects or {}).items():
            # two looks without it: one may fall between the edit of a person and its repair
            others = [(s.objects or {}).get(uid) for s in (after, later)]
            gone = all(_name(one) in (before.rows or ()) and _name(one) not in (s.rows or ()) for s in (after, later))
            if gone and all(other is not None and _stands(one, other) for other in others):
                yield f"I7: the row of {_name(one)} vanished at {after.at:%H:%M:%S} while its endpoint stands"


def _given_up(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (
        _pod(one) is not None
        and _pod(one) == _pod(other)
        and bool(_endpoint(one))
        and not _endpoint(other)
        and _is(other, "ProviderObserved") == "False"
    )


def _stands(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """The same pod and the same wish, with an endpoint all the while, and nothing known that would end the row.

    A confirmed loss of the port ends it, and `Registered` says so.
    """
    same = _pod(one) == _pod(other) and _published(one) == _published(other)
    there = bool(_endpoint(one)) and bool(_endpoint(other)) and not other["metadata"].get("deletionTimestamp")
    return same and there and (_is(other, "Registered") == "True" or _is(other, "ProviderObserved") == "False")


def _published(raw: Mapping[str, Any]) -> Any:
    return (raw.get("spec") or {}).get("podsConf")


def _name(raw: Mapping[str, Any]) -> str:
    return str((_published(raw) or {}).get("name") or raw["metadata"]["name"])


def _pod(raw: Mapping[str, Any]) -> str | None:
    return ((raw.get("status") or {}).get("attempt") or {}).get("podId")


def _endpoint(raw: Mapping[str, Any]) -> Any:
    return ((raw.get("status") or {}).get("endpoint") or {}).get("address")


def _is(raw: Mapping[str, Any], kind: str) -> str | None:
    conditions = (raw.get("status") or {}).get("conditions") or []
    return next((c["status"] for c in conditions if c["type"] == kind), None)
