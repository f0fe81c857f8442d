"""The objects of a cluster in memory, behind the operator's own port: versions, conflicts, finalizers, watches.

Only schedules that must run by the thousand use it; whatever is asserted of Kubernetes is asserted on a real API
server elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chaoskit.clock import LoopClock
from chaoskit.wire import Wire
from gpupod_operator.api.names import GPUPODS, SWEEPCELLS
from gpupod_operator.api.times import format_time
from gpupod_operator.ports import ApiConflict, ApiNotFound

Raw = dict[str, Any]
Watcher = Callable[[str, str, Raw], None]
KINDS = {GPUPODS: "GpuPod", SWEEPCELLS: "SweepCell"}


def _copy(value: Any) -> Any:
    """As `copy.deepcopy` for what JSON knows, in a fifth of its time: half of a schedule went there."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


class MemoryCluster:
    """What the API server and etcd hold. It outlives every operator process."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self._version = 0
        self.objects: dict[str, dict[tuple[str, str], Raw]] = {GPUPODS: {}, SWEEPCELLS: {}}
        self.secrets: dict[tuple[str, str], dict[str, bytes]] = {}
        self.configs: dict[tuple[str, str], Raw] = {}
        self.events: list[tuple[str, str, str]] = []
        self.writes = 0
        self._saved: Raw = {}
        self.restored = False
        """An older snapshot was put back."""
        self._watchers: list[Watcher] = []
        self._judges: list[Watcher] = []
        self.wire = Wire(self._deliver, lambda: ((p, raw) for p, held in self.objects.items() for raw in held.values()))

    # What a person does.

    def apply(self, plural: str, name: str, spec: Mapping[str, Any], namespace: str = "ml") -> Raw:
        """Create the object, or give it this spec."""
        key = (namespace, name)
        held = self.objects[plural].get(key)
        if held is None:
            metadata: Raw = {"namespace": namespace, "name": name, "uid": f"uid-{self._version}-{name}"}
            metadata |= {"generation": 0, "creationTimestamp": format_time(self._clock.now()), "annotations": {}}
            held = {"apiVersion": "gpupod.dev/v1alpha1", "kind": KINDS[plural], "metadata": metadata, "status": {}}
        held = _copy(held)
        held["spec"] = _copy(dict(spec))
        held["metadata"]["generation"] += 1
        return self._keep(plural, held)

    def edit(self, plural: str, name: str, namespace: str = "ml", **spec: Any) -> Raw:
        """Change fields of the spec."""
        return self.apply(plural, name, {**self.objects[plural][(namespace, name)]["spec"], **spec}, namespace)

    def annotate(self, plural: str, name: str, namespace: str = "ml", **annotations: str | None) -> Raw:
        """Set or (None) remove annotations of `gpupod.dev/`; underscores are dashes."""
        held = _copy(self.objects[plural][(namespace, name)])
        for key, value in annotations.items():
            full = "gpupod.dev/" + key.replace("_", "-")
            held["metadata"]["annotations"].pop(full, None)
            if value is not None:
                held["metadata"]["annotations"][full] = value
        return self._keep(plural, held)

    def delete(self, plural: str, name: str, namespace: str = "ml") -> None:
        """As kubectl does: with a finalizer only the time of the wish is written."""
        held = _copy(self.objects[plural][(namespace, name)])
        if not held["metadata"].get("finalizers"):
            self._drop(plural, (namespace, name))
            return
        held["metadata"].setdefault("deletionTimestamp", format_time(self._clock.now()))
        self._keep(plural, held)

    def snapshot(self, plural: str, name: str, namespace: str = "ml", status: Raw | None = None) -> None:
        """Remember the object as it is now, or with this status."""
        held = _copy(self.objects[plural][(namespace, name)])
        self._saved = held if status is None else {**held, "status": status}

    def restore(self, plural: str, name: str, namespace: str = "ml") -> None:
        """As after a restore of etcd, which watches see as one more change: the object is what it once was."""
        held = self.objects[plural][(namespace, name)]
        self.restored = True
        self._keep(plural, {**_copy(self._saved), "metadata": _copy(held["metadata"])})

    def clone(self, plural: str, raw: Raw) -> Raw:
        """An object of another cluster, uid, finalizers, status and all."""
        return self._keep(plural, _copy(raw))

    def listen(self, judge: Watcher) -> None:
        """Told of each change as it is, whatever happens to watches."""
        self._judges.append(judge)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Told (plural, ADDED or MODIFIED or DELETED, object) after each change. Returns the way out."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    def find(self, plural: str, name: str, namespace: str = "ml") -> Raw | None:
        """The object as it is now."""
        # no copy: it is only looked at, once each second of a schedule, and what is stored is replaced and never edited
        return self.objects[plural].get((namespace, name))

    # The operator's port.

    async def get(self, plural: str, namespace: str, name: str) -> Raw:
        return self._held(plural, (namespace, name))

    async def list_all(self, plural: str, namespace: str | None = None) -> tuple[Raw, ...]:
        return tuple(_copy(raw) for key, raw in self.objects[plural].items() if namespace in (None, key[0]))

    async def list_cells(self, namespace: str, pod: str) -> tuple[Raw, ...]:
        found = await self.list_all(SWEEPCELLS, namespace)
        return tuple(raw for raw in found if raw["spec"]["podRef"]["name"] == pod)

    async def apply_status(
        self, plural: str, namespace: str, name: str, status: Mapping[str, Any], *, resource_version: str, uid: str
    ) -> Raw:
        held = self._held(plural, (namespace, name))
        if held["metadata"]["uid"] != uid or held["metadata"]["resourceVersion"] != resource_version:
            raise ApiConflict(f"{name} was changed")
        held["status"] = _copy(dict(status))
        return self._write(plural, held)

    async def set_finalizer(
        self, plural: str, namespace: str, name: str, finalizer: str, *, present: bool, resource_version: str
    ) -> Raw:
        held = self._held(plural, (namespace, name))
        if held["metadata"]["resourceVersion"] != resource_version:
            raise ApiConflict(f"{name} was changed")
        others = [f for f in held["metadata"].get("finalizers") or [] if f != finalizer]
        held["metadata"]["finalizers"] = [*others, finalizer] if present else others
        if not held["metadata"]["finalizers"] and held["metadata"].get("deletionTimestamp"):
            self.writes += 1
            self._drop(plural, (namespace, name))
            return held
        return self._write(plural, held)

    async def read_secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        if (namespace, name) not in self.secrets:
            raise ApiNotFound(f"Secret {name}")
        return dict(self.secrets[(namespace, name)])

    async def apply_secret(
        self, namespace: str, name: str, data: Mapping[str, bytes], *, labels: Mapping[str, str]
    ) -> None:
        self.writes += 1
        self.secrets[(namespace, name)] = dict(data)

    async def delete_secret(self, namespace: str, name: str) -> None:
        self.secrets.pop((namespace, name), None)

    async def read_config(self, namespace: str, name: str) -> Raw | None:
        return _copy(self.configs.get((namespace, name)))

    async def apply_config(
        self,
        namespace: str,
        name: str,
        data: Mapping[str, str],
        *,
        labels: Mapping[str, str],
        owner: Mapping[str, Any] | None = None,
    ) -> None:
        self.writes += 1
        self.configs[(namespace, name)] = {"metadata": {"name": name, "labels": dict(labels)}, "data": dict(data)}

    async def delete_config(self, namespace: str, name: str) -> None:
        self.configs.pop((namespace, name), None)

    async def namespace_terminating(self, namespace: str) -> bool:
        return False

    async def emit(
        self, obj: Mapping[str, Any], *, kind: str, reason: str, message: str, warning: bool, action: str
    ) -> None:
        self.events.append((obj["metadata"]["name"], reason, message))

    def _held(self, plural: str, key: tuple[str, str]) -> Raw:
        if key not in self.objects[plural]:
            raise ApiNotFound("/".join(key))
        return _copy(self.objects[plural][key])

    def _write(self, plural: str, raw: Raw) -> Raw:
        self.writes += 1
        return self._keep(plural, raw)

    def _keep(self, plural: str, raw: Raw) -> Raw:
        key = (raw["metadata"]["namespace"], raw["metadata"]["name"])
        kind = "MODIFIED" if key in self.objects[plural] else "ADDED"
        self._version += 1
        raw["metadata"]["resourceVersion"] = str(self._version)
        self.objects[plural][key] = raw
        self._tell(plural, kind, raw)
        return _copy(raw)

    def _drop(self, plural: str, key: tuple[str, str]) -> None:
        self._version += 1
        self._tell(plural, "DELETED", self.objects[plural].pop(key))

    def _tell(self, plural: str, kind: str, raw: Raw) -> None:
        for judge in self._judges:
            judge(plural, kind, _copy(raw))
        self.wire.tell(plural, kind, raw)  # which may keep it: what is stored is replaced and never edited

    def _deliver(self, plural: str, kind: str, raw: Raw) -> None:
        for watcher in tuple(self._watchers):
            watcher(plural, kind, _copy(raw))
