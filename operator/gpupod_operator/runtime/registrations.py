"""Who holds which name in pods.conf, kept up to date object by object.

`render.registration` decides over a whole namespace. Only objects that ask for one and the same name have to do with
each other, so it is asked per name here: a change of one object among a thousand looks at that object alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.render.registration import Registration, registration
from gpupod_operator.render.rows import PodObject, Row, Verdict, pod_object
from gpupod_operator.runtime.store import Key, key_of

PARSED = 100
"""Objects that are kept in their typed form, which is larger (30 KB) than the rest that is kept of one: as many as are
worked on at a time, and not those at rest."""

Name = tuple[str, str]
"""Namespace and name of a row in pods.conf."""


class Registrations:
    """Fed with every committed GpuPod. An object is parsed when somebody asks, and stays so while it is asked about."""

    def __init__(self) -> None:
        self._raws: dict[Key, Mapping[str, Any]] = {}
        self._parsed: OrderedDict[Key, PodObject] = OrderedDict()
        self._names: dict[Key, Name] = {}
        self._askers: dict[str, dict[Name, set[Key]]] = {}
        """By namespace, so that one namespace is rendered without a look at the others."""
        self._decided: dict[Name, Registration] = {}

    def changed(self, key: Key, raw: Mapping[str, Any] | None) -> frozenset[str]:
        """Take in a new version (None: the object is gone). Returns the uids that ask for a name it has or had."""
        touched = set()
        before = self._names.pop(key, None)
        self._parsed.pop(key, None)
        self._raws.pop(key, None)
        if before is not None:
            touched.add(before)
            self._leave(key, before)
        if raw is not None:
            name = _row_name(raw)
            touched.add(name)
            self._raws[key], self._names[key] = raw, name
            self._askers.setdefault(key[0], {}).setdefault(name, set()).add(key)
        for name in touched:
            self._decided.pop(name, None)
        # whoever else asks for the name may have got it or lost it by this; hardly anybody does
        others = {asker for name in touched for asker in self._askers.get(name[0], {}).get(name, ())} - {key}
        return frozenset(self._raws[asker]["metadata"]["uid"] for asker in others)

    def verdict(self, key: Key, status: GpuPodStatus | None = None) -> Verdict | None:
        """The verdict on one object, with its committed status or with `status` in its place.

        None for one that is not known. Raises ValueError as `pod_object` does.
        """
        raw = self._raws.get(key)
        if raw is None:
            return None
        name = self._names[key]
        if status is None:
            return self._decide(name).verdicts.get(raw["metadata"]["uid"])
        askers = {asker: self.parsed(self._raws[asker]) for asker in self._askers[name[0]][name]}
        askers[key] = replace(askers[key], status=status)
        return registration(askers.values()).verdicts.get(raw["metadata"]["uid"])

    def rows(self, namespace: str) -> tuple[Row, ...]:
        """All rows of a namespace, by name. Raises ValueError as `pod_object` does."""
        names = self._askers.get(namespace, {})
        return tuple(row for name in sorted(names) for row in self._decide(name).rows)

    def parsed(self, raw: Mapping[str, Any]) -> PodObject:
        """The object's typed form, parsed once per version."""
        key = key_of(raw)
        if self._raws.get(key) is not raw:
            return pod_object(raw)
        found = self._parsed.get(key)
        if found is None:
            found = self._parsed[key] = pod_object(raw)
            if len(self._parsed) > PARSED:
                self._parsed.popitem(last=False)
        self._parsed.move_to_end(key)
        return found

    def _decide(self, name: Name) -> Registration:
        found = self._decided.get(name)
        if found is None:
            keys = self._askers[name[0]][name]
            found = self._decided[name] = registration(self.parsed(self._raws[key]) for key in keys)
        return found

    def _leave(self, key: Key, name: Name) -> None:
        names = self._askers[key[0]]
        names[name].discard(key)
        if not names[name]:
            del names[name]
        if not names:
            del self._askers[key[0]]


def _row_name(raw: Mapping[str, Any]) -> Name:
    """As `PodObject.row_name`, without parsing the rest."""
    metadata = raw["metadata"]
    return metadata["namespace"], ((raw.get("spec") or {}).get("podsConf") or {}).get("name") or metadata["name"]
