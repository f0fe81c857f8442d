"""Committed objects as the API server last showed them: one place for the loops, the renderer and the collector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gpupod_operator.api.names import GPUPODS, SWEEPCELLS

Key = tuple[str, str]
"""Namespace and name."""
Listener = Callable[[str, Key, dict[str, Any] | None], None]
"""Called with plural, key and the object as it was before (None: it is new)."""


class Store:
    """Fed by watches and by the answers to our own writes; the newer resourceVersion wins.

    `seeded` is False until a complete list of both kinds was put in: before that nobody may conclude from an absence.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[Key, dict[str, Any]]] = {GPUPODS: {}, SWEEPCELLS: {}}
        self._cells_by_pod: dict[Key, set[Key]] = {}
        self._listeners: list[Listener] = []
        self.seeded = False

    def listen(self, callback: Listener) -> None:
        """Call it after each change; what the object is now, or that it is gone, the store says."""
        self._listeners.append(callback)

    def put(self, plural: str, raw: Mapping[str, Any]) -> bool:
        """Keep the object if it is newer than what is held; True when that changed anything."""
        key = key_of(raw)
        held = self._objects[plural].get(key)
        if held is not None and not _newer(raw, held):
            return False
        self._objects[plural][key] = _kept(raw)
        if plural == SWEEPCELLS:
            self._index(key, held, raw)
        self._tell(plural, key, held)
        return True

    def remove(self, plural: str, key: Key, uid: str | None = None) -> None:
        """Forget an object (with `uid`, only if it is still that one)."""
        held = self._objects[plural].get(key)
        if held is None or (uid is not None and held["metadata"]["uid"] != uid):
            return
        del self._objects[plural][key]
        if plural == SWEEPCELLS:
            self._index(key, held, None)
        self._tell(plural, key, held)

    def seed(self, plural: str, raws: Iterable[Mapping[str, Any]]) -> None:
        """Put in a complete list; what it lacks is forgotten."""
        listed = {key_of(raw): raw for raw in raws}
        for key in [k for k in self._objects[plural] if k not in listed]:
            self.remove(plural, key)
        for raw in listed.values():
            self.put(plural, raw)

    def get(self, plural: str, key: Key) -> dict[str, Any] | None:
        return self._objects[plural].get(key)

    def all(self, plural: str, namespace: str | None = None) -> list[dict[str, Any]]:
        """Objects of a kind, of one namespace or of all."""
        return [raw for key, raw in self._objects[plural].items() if namespace is None or key[0] == namespace]

    def cells_of(self, pod: Key) -> list[dict[str, Any]]:
        """SweepCells that name the GpuPod. A hint for scheduling; permissions need a live list."""
        keys = self._cells_by_pod.get(pod, set())
        return [self._objects[SWEEPCELLS][k] for k in sorted(keys) if k in self._objects[SWEEPCELLS]]

    def _index(self, key: Key, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> None:
        if before is not None:
            pod = _pod_key(before)
            cells = self._cells_by_pod.get(pod, set())
            cells.discard(key)
            if not cells:
                self._cells_by_pod.pop(pod, None)
        if after is not None:
            self._cells_by_pod.setdefault(_pod_key(after), set()).add(key)

    def _tell(self, plural: str, key: Key, before: dict[str, Any] | None) -> None:
        for callback in self._listeners:
            callback(plural, key, before)


def key_of(raw: Mapping[str, Any]) -> Key:
    """Namespace and name of an object."""
    metadata = raw["metadata"]
    return metadata["namespace"], metadata["name"]


def _kept(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Without the field managers, which are about as large as the rest and are nobody's business here."""
    return {**raw, "metadata": {name: value for name, value in raw["metadata"].items() if name != "managedFields"}}


def _pod_key(raw: Mapping[str, Any]) -> Key:
    return raw["metadata"]["namespace"], raw["spec"]["podRef"]["name"]


def _newer(raw: Mapping[str, Any], held: Mapping[str, Any]) -> bool:
    """Resource versions are comparable integers (since Kubernetes 1.35); another uid is another object."""
    if raw["metadata"]["uid"] != held["metadata"]["uid"]:
        return bool(raw["metadata"]["creationTimestamp"] >= held["metadata"]["creationTimestamp"])
    try:
        return int(raw["metadata"]["resourceVersion"]) > int(held["metadata"]["resourceVersion"])
    except ValueError:
        return bool(raw["metadata"]["resourceVersion"] != held["metadata"]["resourceVersion"])
