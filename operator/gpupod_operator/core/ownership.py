"""Whose pod is it? The only place that makes the handle without which no mutating call can be made."""

from __future__ import annotations

from dataclasses import dataclass

from gpupod_operator.core.provider import ProviderPod

_MINT = object()


@dataclass(frozen=True, slots=True)
class OwnedPod:
    """Proof that the pod with this exact id belongs to the object. Made by `claim` and nowhere else."""

    id: str
    name: str
    reason: str
    _mint: object = None

    def __post_init__(self) -> None:
        if self._mint is not _MINT:
            raise TypeError("an OwnedPod is made by core.ownership.claim only")


@dataclass(frozen=True, slots=True)
class Foreign:
    """Not ours: never written to. `why` is for people."""

    why: str


def owner_stamp(instance: str, namespace: str, name: str, uid: str) -> str:
    """The value of GPUPOD_OWNER."""
    return f"{instance}/{namespace}/{name}/{uid}"


def claim(pod: ProviderPod, *, instance: str, uid: str, adopt_id: str | None) -> OwnedPod | Foreign:
    """A handle if the pod carries our uid under our instance, or if exactly its id is adopted and unstamped.

    An adopted pod that carries the stamp of another object (or another instance) stays foreign: `adopt` cannot steal.
    """
    stamp = pod.stamp
    if stamp is not None:
        if stamp.uid == uid and stamp.instance == instance:
            return OwnedPod(pod.id, pod.name, "stamp", _MINT)
        return Foreign(f"pod {pod.id} carries the stamp of {stamp.owner!r}")
    if adopt_id is not None and pod.id == adopt_id:
        return OwnedPod(pod.id, pod.name, "adopted", _MINT)
    return Foreign(f"pod {pod.id} carries no stamp of ours and is not named by spec.adopt.podId")
