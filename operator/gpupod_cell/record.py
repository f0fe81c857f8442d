"""What the agent knows of each cell, and the state file the operator reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from gpupod_cell import FORMAT
from gpupod_cell.layout import Layout, encode, read_json, write_atomically

HEARTBEAT = timedelta(seconds=30)
"""The state file is written on change, and for the heartbeat alone at most this often."""


def stamp_of(at: datetime) -> str:
    """RFC 3339, whole seconds, UTC."""
    return at.astimezone(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


def time_of(text: str) -> datetime:
    """The inverse of `stamp_of`."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


@dataclass
class Cell:
    """One cell. `done` is the done file the manifest was taken of; `failures` counts refusals in a row."""

    name: str
    state: str = "Pending"
    done_seen: bool = False
    manifest: dict[str, Any] | None = None
    commit: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    retry_at: datetime | None = None
    done: dict[str, int] | None = None
    failures: int = 0
    no_xet: bool = False
    basis: str = ""
    """What the last refusal was based on; another one means that a new try makes sense."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "state": self.state,
            "doneSeen": self.done_seen,
            "manifest": self.manifest,
            "commit": self.commit,
            "error": self.error,
            "retryAt": stamp_of(self.retry_at) if self.retry_at else None,
            "done": self.done,
            "failures": self.failures,
            "noXet": self.no_xet,
            "basis": self.basis,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Cell:
        retry = value.get("retryAt")
        state = str(value.get("state", "Pending"))
        return cls(
            name=str(value.get("name", "")),
            # An upload of an earlier process died with it.
            state="Produced" if state == "Uploading" else state,
            done_seen=bool(value.get("doneSeen")),
            manifest=value.get("manifest"),
            commit=value.get("commit"),
            error=value.get("error"),
            retry_at=time_of(retry) if retry else None,
            done=value.get("done"),
            failures=int(value.get("failures", 0)),
            no_xet=bool(value.get("noXet")),
            basis=str(value.get("basis", "")),
        )


@dataclass
class State:
    """The whole state file of one agent process."""

    layout: Layout
    identity: dict[str, Any]
    cells: dict[str, Cell] = field(default_factory=dict)
    problem: str | None = None
    _written: bytes = b""
    _heartbeat: datetime | None = None

    def load(self) -> None:
        """Take over what an earlier process knew. A damaged file only costs knowledge that the Hub has as well."""
        try:
            value = read_json(self.layout.state) or {}
            if value.get("format") == FORMAT:
                self.cells = {uid: Cell.from_json(entry) for uid, entry in value.get("cells", {}).items()}
        except (ValueError, TypeError, AttributeError) as damage:
            self.cells = {}
            self.problem = f"state.json was damaged and has been started anew ({type(damage).__name__})"

    def write(self, now: datetime, *, awaited: bool = False) -> bool:
        """Write if anything changed or the heartbeat is due or awaited; whether it was written."""
        agent: dict[str, Any] = {**self.identity, "problem": self.problem}
        body: dict[str, dict[str, Any] | int] = {
            "format": FORMAT,
            "agent": agent,
            "cells": {uid: cell.to_json() for uid, cell in self.cells.items()},
        }
        plain = encode(body)
        due = awaited or self._heartbeat is None or now - self._heartbeat >= HEARTBEAT
        if plain == self._written and not due:
            return False
        agent["heartbeat"] = stamp_of(now)
        write_atomically(self.layout.state, encode(body))
        self._written, self._heartbeat = plain, now
        return True
