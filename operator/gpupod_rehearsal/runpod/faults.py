"""Faults by name: a book of rules, each aimed at requests, pods, hosts, data centers or accounts, for a while."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from gpupod_rehearsal.runpod.clock import Now
from gpupod_rehearsal.runpod.fault_catalog import CATALOG, FaultKind, Param


class UnknownFaultError(ValueError):
    """The name, a parameter or a target of a fault is not known; the message lists what is."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a rule is matched against; parts that do not apply stay None."""

    pod: str | None = None
    pod_name: str | None = None
    host: str | None = None
    data_center: str | None = None
    account: str | None = None
    gpu: str | None = None
    method: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a rule is aimed at. Shell patterns; None matches anything; `pod` means an id or a name."""

    pod: str | None = None
    host: str | None = None
    data_center: str | None = None
    account: str | None = None
    gpu: str | None = None
    method: str | None = None
    path: str | None = None

    def matches(self, subject: Subject) -> bool:
        """Whether every part that is set fits the subject."""
        if self.pod is not None and not any(
            name is not None and fnmatchcase(name, self.pod) for name in (subject.pod, subject.pod_name)
        ):
            return False
        return all(
            _fits(pattern, value)
            for pattern, value in (
                (self.host, subject.host),
                (self.data_center, subject.data_center),
                (self.account, subject.account),
                (self.gpu, subject.gpu),
                (self.method, subject.method),
                (self.path, subject.path),
            )
        )


@dataclass(slots=True)
class Rule:
    """One armed fault. It works from `begins` until `ends`, and on at most `left` subjects or requests."""

    id: str
    kind: FaultKind
    target: Target
    begins: datetime
    ends: datetime | None
    left: int | None
    params: dict[str, Param]
    victims: set[str] = field(default_factory=set)
    hits: int = 0

    def active(self, now: datetime) -> bool:
        """Whether `now` lies in the rule's time."""
        return self.begins <= now and (self.ends is None or now < self.ends)

    def seize(self, key: str) -> None:
        """Count a hit on `key` and keep hold of it."""
        self.victims.add(key)
        self.hits += 1
        self.left = None if self.left is None else self.left - 1

    def number(self, name: str) -> float:
        """A numeric parameter."""
        return float(self.params[name] or 0)

    def text(self, name: str) -> str:
        """A parameter as text."""
        return str(self.params[name])

    def view(self) -> dict[str, object]:
        """The rule as JSON for `/_sim/faults`."""
        return {
            "id": self.id,
            "name": self.kind.name,
            "begins": self.begins.isoformat(),
            "ends": self.ends.isoformat() if self.ends else None,
            "left": self.left,
            "hits": self.hits,
            "victims": sorted(self.victims),
            "params": self.params,
        }


class FaultBook:
    """All armed faults, asked by the model and by the HTTP layer."""

    def __init__(self, clock: Now) -> None:
        self._clock = clock
        self._rules: dict[str, Rule] = {}
        self._ids = itertools.count(1)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Armed rules in the order they were added."""
        return tuple(self._rules.values())

    def add(
        self,
        name: str,
        *,
        count: int | None = None,
        after: float = 0,
        duration: float | None = None,
        target: Target | None = None,
        **params: Param,
    ) -> Rule:
        """Arm a fault, `after` seconds from now for `duration` seconds (for ever) and `count` hits (unbounded).

        Keywords that are parts of a `Target` (`pod`, `host`, `data_center`, `account`, `gpu`, `method`, `path`) aim it,
        the others are the fault's parameters. A `count` of -1 is without bound. Raises UnknownFaultError.
        """
        kind = CATALOG.get(name)
        if kind is None:
            raise UnknownFaultError(f"no fault is called {name!r}; there are: {', '.join(sorted(CATALOG))}")
        parts = {part: str(params.pop(part)) for part in Target.__dataclass_fields__ if part in params}
        unknown = sorted(set(params) - set(kind.defaults))
        if unknown:
            raise UnknownFaultError(
                f"{name} has no parameter {', '.join(unknown)}; it has: {', '.join(kind.defaults) or '-'}"
            )
        begins = self._clock() + timedelta(seconds=after)
        lasts = duration if duration is not None else kind.duration
        ends = None if lasts is None else begins + timedelta(seconds=lasts)
        left = count if count is not None else kind.count
        rule = Rule(
            f"fault-{next(self._ids)}",
            kind,
            target or Target(**parts),
            begins,
            ends,
            left,
            {**kind.defaults, **params},
        )
        self._rules[rule.id] = rule
        return rule

    def load(self, document: Mapping[str, object]) -> Rule:
        """Arm a fault from its JSON or YAML form: `name`, `count`, `after`, `duration`, `target`, `params`."""
        unknown = sorted(set(document) - {"name", "count", "after", "duration", "target", "params"})
        if unknown:
            raise UnknownFaultError(f"a fault has no field {', '.join(unknown)}")
        target, params = document.get("target") or {}, document.get("params") or {}
        if not isinstance(target, dict) or not isinstance(params, dict):
            raise UnknownFaultError("target and params are objects")
        parts = {
            "data_center" if key in {"dataCenter", "dc"} else str(key): str(value) for key, value in target.items()
        }
        strange = sorted(set(parts) - set(Target.__dataclass_fields__))
        if strange:
            raise UnknownFaultError(f"a target has no part {', '.join(strange)}")
        count, after, duration = document.get("count"), document.get("after") or 0, document.get("duration")
        return self.add(
            str(document.get("name")),
            count=None if count is None else int(str(count)),
            after=float(str(after)),
            duration=None if duration is None else float(str(duration)),
            target=Target(**parts),
            **params,
        )

    def remove(self, rule_id: str) -> bool:
        """Disarm one rule; False when there is none of that id."""
        return self._rules.pop(rule_id, None) is not None

    def clear(self) -> None:
        """Disarm everything."""
        self._rules.clear()

    def knows(self, name: str) -> bool:
        """Whether any rule of this name is armed, working or not."""
        return any(rule.kind.name == name for rule in self._rules.values())

    def fire(self, name: str, subject: Subject) -> Rule | None:
        """The first working rule of this name that fits; it counts one hit."""
        now = self._clock()
        for rule in self._rules.values():
            if rule.kind.name == name and rule.active(now) and rule.left != 0 and rule.target.matches(subject):
                rule.hits += 1
                rule.left = None if rule.left is None else rule.left - 1
                return rule
        return None

    def grip(self, name: str, subject: Subject, key: str) -> Rule | None:
        """The working rule of this name that holds the pod or host `key`, gripping it first where one fits.

        A gripped subject stays so while the rule works: a wedge does not heal because it was looked at.
        """
        rule = self.held(name, key)
        if rule is not None:
            return rule
        rule = self.fire(name, subject)
        if rule is not None:
            rule.victims.add(key)
        return rule

    def held(self, name: str, key: str) -> Rule | None:
        """The working rule of this name that already holds `key`."""
        now = self._clock()
        return next(
            (
                rule
                for rule in self._rules.values()
                if rule.kind.name == name and key in rule.victims and rule.active(now)
            ),
            None,
        )

    def edges(self, now: datetime) -> list[datetime]:
        """Instants after `now` at which a rule begins or ends."""
        return [at for rule in self._rules.values() for at in (rule.begins, rule.ends) if at is not None and at > now]


def _fits(pattern: str | None, value: str | None) -> bool:
    return pattern is None or (value is not None and fnmatchcase(value, pattern))
