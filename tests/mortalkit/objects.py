"""What a person does to objects of a real API server, with the words that operations have for it.

Operations say it without awaiting; it is carried out in order before they wait for anything.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from clusterkit.admin import Admin
from gpupod_operator.api.names import GPUPODS, SWEEPCELLS

Raw = dict[str, Any]
KIND = "GpuPod"
KINDS = {GPUPODS: "GpuPod", SWEEPCELLS: "SweepCell"}
API = "gpupod.dev/v1alpha1"
PACE = 20
"""Durations in specs are this much shorter than those of schedules on virtual time."""
QUICK = {"startTimeout": "20s", "sshWait": "4s", "wedgeAfter": "5s"}
"""A pod of the simulated vendor starts in a second here."""


class RealObjects:
    """The objects of one namespace as they were last seen, and the orders that are still to be carried out."""

    def __init__(self, admin: Admin, *, inside: bool) -> None:
        self._admin = admin
        self._inside = inside
        self._orders: list[Callable[[], Awaitable[Any]]] = []
        self._saved: Raw = {}
        self.objects: dict[str, dict[tuple[str, str], Raw]] = {GPUPODS: {}, SWEEPCELLS: {}}
        self.secrets = _Secrets(self._order_secret)
        self.restored = False

    def apply(self, plural: str, name: str, spec: Mapping[str, Any], namespace: str = "ml") -> None:
        """Create the object."""
        made = quick(spec, inside=self._inside) if plural == GPUPODS else dict(spec)
        body = {"apiVersion": API, "kind": KINDS[plural], "metadata": {"name": name}, "spec": made}
        self._orders.append(lambda: self._admin.apply(body, namespace=namespace))

    def edit(self, plural: str, name: str, namespace: str = "ml", **spec: Any) -> None:
        """Change fields of the spec; None takes one away."""
        self._patch(name, namespace, {"spec": spec})

    def annotate(self, plural: str, name: str, namespace: str = "ml", **annotations: str | None) -> None:
        """Set or (None) remove annotations of `gpupod.dev/`; underscores are dashes."""
        named = {"gpupod.dev/" + key.replace("_", "-"): value for key, value in annotations.items()}
        self._patch(name, namespace, {"metadata": {"annotations": named}})

    def delete(self, plural: str, name: str, namespace: str = "ml") -> None:
        self._orders.append(lambda: self._admin.delete(KIND, name, namespace=namespace))

    def snapshot(self, plural: str, name: str, namespace: str = "ml", status: Raw | None = None) -> None:
        """Remember the object's status as it is now, or this one."""
        held = self.objects[GPUPODS][(namespace, name)].get("status") or {}
        self._saved = held if status is None else status

    def restore(self, plural: str, name: str, namespace: str = "ml") -> None:
        """The status is what it once was."""
        self.restored = True

        async def put_back() -> None:
            held = await self._admin.get(KIND, name, namespace=namespace)
            await self._admin.replace({**held, "status": self._saved}, namespace=namespace, subresource="status")

        self._orders.append(put_back)

    def find(self, plural: str, name: str, namespace: str = "ml") -> Raw | None:
        """The object as it was last seen."""
        return self.objects[plural].get((namespace, name))

    async def refresh(self) -> None:
        """Carry out what was ordered, and look."""
        while self._orders:
            await self._orders.pop(0)()
        for plural, kind in KINDS.items():
            found = await self._admin.list(kind)
            self.objects[plural] = {(raw["metadata"]["namespace"], raw["metadata"]["name"]): raw for raw in found}

    def _patch(self, name: str, namespace: str, patch: Raw) -> None:
        self._orders.append(lambda: self._admin.patch(KIND, name, patch, namespace=namespace))

    def _order_secret(self, key: tuple[str, str], data: Mapping[str, bytes]) -> None:
        coded = {name: base64.b64encode(value).decode() for name, value in data.items()}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": key[1]}, "data": coded}
        self._orders.append(lambda: self._admin.apply(body, namespace=key[0]))


class _Secrets(dict[tuple[str, str], dict[str, bytes]]):
    """A Secret that is set here is applied."""

    def __init__(self, order: Callable[[tuple[str, str], Mapping[str, bytes]], None]) -> None:
        super().__init__()
        self._order = order

    def __setitem__(self, key: tuple[str, str], data: dict[str, bytes]) -> None:
        super().__setitem__(key, data)
        self._order(key, data)


def quick(spec: Mapping[str, Any], *, inside: bool) -> Raw:
    """The spec for a world on the real clock. Without an inside of pods there is no SSH and nothing runs on them."""
    whole = {**spec, "health": QUICK | {} if inside else {**QUICK, "readiness": "Mapping"}}
    if spec.get("spend"):
        whole["spend"] = {name: _shorter(value) for name, value in spec["spend"].items()}
    command = whole.pop("workload", {}).get("command")
    if command and inside:
        # schedules on virtual time name a program that no pod has
        whole["workload"] = {"command": command if command[0] == "bash" else ["sleep", "100000"]}
    return whole


def _shorter(value: str) -> str:
    found = re.fullmatch(r"(\d+)m", value)
    return f"{int(found[1]) * 60 // PACE}s" if found else value
