"""cells.json: which cells the operator wants to be taken where."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gpupod_cell import FORMAT
from gpupod_cell.timer import Timer, parse_timer

CONTROL_FOLDER = "_cell"
"""Holds the manifest below the destination; no artifact may have this name."""

_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class BadOrders(Exception):
    """cells.json cannot be used; the message says why."""


@dataclass(frozen=True)
class Artifact:
    """Files below one path. `files` is an exact set; `include` are globs of which at least `min_files` must match."""

    name: str
    path: str
    files: tuple[str, ...] | None
    include: tuple[str, ...] | None
    min_files: int | None


@dataclass(frozen=True)
class Destination:
    """`path` has no leading or trailing slash."""

    repo: str
    repo_type: str
    revision: str
    path: str


@dataclass(frozen=True)
class Order:
    """One cell as the operator describes it. `state` is the SweepCell's phase as the operator knows it."""

    uid: str
    name: str
    namespace: str
    sweep: str
    state: str
    done_file: str
    artifacts: tuple[Artifact, ...]
    destination: Destination
    token_from: str
    progress_deadline: float
    manifest: str | None
    commit: str | None

    @property
    def settled(self) -> bool:
        """The operator has proof, or a commit to prove: nothing is left to do for the agent."""
        return self.state == "Verified" or self.commit is not None


@dataclass(frozen=True)
class Orders:
    """The whole file. `unusable` names entries that could not be read; they do not stop the others."""

    pod_id: str
    attempt: str
    cells: tuple[Order, ...]
    unusable: tuple[str, ...] = ()
    timer: Timer | None = None


def read_orders(path: Path) -> Orders | None:
    """The orders in a file, None while the operator has not written any. Raises BadOrders."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise BadOrders(f"cells.json cannot be read: {problem}") from problem
    return parse_orders(data)


def parse_orders(data: bytes) -> Orders:
    """The orders in these bytes. Raises BadOrders."""
    try:
        value = json.loads(data)
    except ValueError as problem:
        raise BadOrders(f"cells.json cannot be read: {problem}") from problem
    if not isinstance(value, dict):
        raise BadOrders("cells.json does not hold a JSON object")
    if value.get("format") != FORMAT:
        raise BadOrders(f"cells.json has format {value.get('format')!r}; this agent reads format {FORMAT}")
    entries = value.get("cells")
    if not isinstance(entries, list):
        raise BadOrders("cells.json has no list of cells")
    cells, unusable = [], []
    for number, entry in enumerate(entries):
        try:
            cells.append(_order(entry))
        except (KeyError, TypeError, ValueError) as problem:
            name = entry.get("name", number) if isinstance(entry, dict) else number
            unusable.append(f"cell {name}: {type(problem).__name__}: {problem}")
    timer = None
    try:
        timer = parse_timer(value.get("timer"))
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        unusable.append(f"timer: {type(problem).__name__}: {problem}")
    return Orders(str(value.get("podId", "")), str(value.get("attempt", "")), tuple(cells), tuple(unusable), timer)


def _order(entry: Mapping[str, Any]) -> Order:
    destination = entry["destination"]
    uid = str(entry["uid"])
    if not _UID.fullmatch(uid):
        raise ValueError("uid is not a plain word")
    done = str(entry["doneFile"])
    if not done.startswith("/"):
        raise ValueError("doneFile is not an absolute path")
    artifacts = tuple(_artifact(item) for item in entry["artifacts"])
    if not artifacts:
        raise ValueError("no artifacts")
    return Order(
        uid=uid,
        name=str(entry["name"]),
        namespace=str(entry.get("namespace", "")),
        sweep=str(entry.get("sweep", "")),
        state=str(entry.get("state", "")),
        done_file=done,
        artifacts=artifacts,
        destination=Destination(
            repo=str(destination["repo"]),
            repo_type=str(destination.get("type", "dataset")),
            revision=str(destination.get("revision", "main")),
            path=str(destination["path"]).strip("/"),
        ),
        token_from=str(entry.get("tokenFrom", "Secret")),
        progress_deadline=float(entry.get("progressDeadlineSeconds", 600)),
        manifest=entry.get("manifest"),
        commit=entry.get("commit"),
    )


def _artifact(item: Mapping[str, Any]) -> Artifact:
    name, path = str(item["name"]), str(item["path"])
    if name == CONTROL_FOLDER or "/" in name or name in ("", ".", ".."):
        raise ValueError(f"artifact name {name!r} cannot be used")
    if not path.startswith("/"):
        raise ValueError(f"the path of artifact {name} is not absolute")
    files = item.get("files")
    for file in files or ():
        if file.startswith("/") or ".." in PurePosixPath(file).parts:
            raise ValueError(f"artifact {name}: {file!r} leads out of its path")
    include = item.get("include")
    least = item.get("minFiles")
    return Artifact(
        name,
        path,
        tuple(str(file) for file in files) if files is not None else None,
        tuple(str(glob) for glob in include) if include is not None else None,
        int(least) if least is not None else None,
    )
