"""The one visit that looks at everything: a script that prints frames, and what they mean."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from gpupod_operator.core.artifacts import AgentCell, AgentReading, AgentTimer
from gpupod_operator.core.shell import LaunchRecord
from gpupod_operator.shell.layout import PodLayout

MAX_FILE_BYTES = 4 * 1024 * 1024
"""Of any file that is read; a state file has about 600 bytes per cell."""

_MARK = b"@@gpupod "

_SCRIPT = r"""
LC_ALL=C; export LC_ALL
frame() { # kind, name, content
  printf '@@gpupod %s %s %s\n' "$1" "$2" "$(printf %s "$3" | wc -c | tr -d ' ')"
  printf '%s\n' "$3"
}
file() { # kind, name, path
  [ -f "$3" ] || return 0
  gp_text=$(head -c "$most" "$3") || return 0
  frame "$1" "$2" "$gp_text"
  case $1 in exit) return 0 ;; esac
  gp_pid=$(grep -o '"pid": *[0-9][0-9]*' "$3" | head -n 1 | grep -o '[0-9]*$')
  [ -n "$gp_pid" ] || return 0
  gp_stat=''
  { read -r gp_stat < "/proc/$gp_pid/stat"; } 2>/dev/null
  frame stat "$gp_pid" "$gp_stat"
}
frame clock now "$(date +%s)"
if [ -r /proc/self/stat ]; then frame proc 1 yes; fi
for gp_file in "$root"/*/launch.json; do
  gp_dir=${gp_file%/launch.json}
  gp_name=${gp_dir##*/}
  case $gp_name in *[!A-Za-z0-9._-]*) continue ;; esac
  file launch "$gp_name" "$gp_file"
  file exit "$gp_name" "$gp_dir/exit.json"
done
file agent state "$root/agent/state.json"
frame end end ''
"""


@dataclass(frozen=True, slots=True)
class Visit:
    """What the pod showed. `launches` and `agent` are None when the answer was cut short."""

    launches: tuple[LaunchRecord, ...] | None
    agent: AgentReading | None


@dataclass(slots=True)
class _Frames:
    launches: dict[str, str] = field(default_factory=dict)
    exits: dict[str, str] = field(default_factory=dict)
    stats: dict[int, str] = field(default_factory=dict)
    agent: str | None = None
    clock: str = ""
    proc: bool = False
    complete: bool = False


def reading_script(layout: PodLayout) -> str:
    """The script; it prints frames `@@gpupod KIND NAME BYTES` and writes nothing."""
    return f"root={shlex.quote(layout.root)}\nmost={MAX_FILE_BYTES}\n{_SCRIPT}"


def parse_visit(output: bytes, asked_at: datetime | None = None) -> Visit:
    """Read the frames. What is broken is unknown (None), never absent and never dead.

    `asked_at`: our time when the script was sent. The agent's heartbeat is brought to our clock by it, a moment too
    early rather than too late: the clock of a rented host may be wrong by any amount.
    """
    frames = _frames(output)
    if not frames.complete:
        return Visit(None, None)
    launches = [
        launch for name, text in sorted(frames.launches.items()) if (launch := _launch(name, text, frames)) is not None
    ]
    readable = len(launches) == len(frames.launches)
    agent = _agent(frames)
    if agent is not None and agent.heartbeat is not None and asked_at is not None and frames.clock.isdigit():
        wrong = asked_at - datetime.fromtimestamp(int(frames.clock) + 1, UTC)
        agent = replace(agent, heartbeat=agent.heartbeat + wrong)
    return Visit(tuple(launches) if readable else None, agent)


def _frames(output: bytes) -> _Frames:
    frames, at = _Frames(), 0
    while (start := output.find(_MARK, at)) >= 0:
        end = output.find(b"\n", start)
        head = output[start + len(_MARK) : end].decode(errors="replace").split() if end >= 0 else []
        if len(head) != 3 or not head[2].isdigit():
            break
        kind, name, size = head[0], head[1], int(head[2])
        body = output[end + 1 : end + 1 + size]
        if len(body) != size:
            break
        at = end + 1 + size
        text = body.decode(errors="replace")
        if kind == "launch":
            frames.launches[name] = text
        elif kind == "exit":
            frames.exits[name] = text
        elif kind == "stat":
            frames.stats[int(name)] = text
        elif kind == "agent":
            frames.agent = text
        elif kind == "clock":
            frames.clock = text
        elif kind == "proc":
            frames.proc = True
        elif kind == "end":
            frames.complete = True
    return frames


def _launch(attempt: str, text: str, frames: _Frames) -> LaunchRecord | None:
    value = _object(text)
    if value is None or not isinstance(value.get("launchId"), str):
        return None
    pid = value.get("pid")
    ended = _object(frames.exits.get(attempt, ""))
    # An exit record of an earlier launch in the same folder says nothing about this one.
    same = ended is not None and ended.get("launchId", value["launchId"]) == value["launchId"]
    code = ended.get("code") if ended is not None and same else None
    return LaunchRecord(
        launch_id=value["launchId"],
        attempt=attempt,
        pid=pid if isinstance(pid, int) else None,
        alive=_alive(pid, value.get("procStart"), frames),
        exit_code=code if isinstance(code, int) else None,
        started_at=_time(value.get("startedAt")),
        pod_started_at=value.get("podStartedAt") if isinstance(value.get("podStartedAt"), str) else None,
        pgid=value.get("pgid") if isinstance(value.get("pgid"), int) else None,
    )


def _alive(pid: Any, start: Any, frames: _Frames) -> bool | None:
    if not isinstance(pid, int) or not frames.proc or pid not in frames.stats:
        return None
    # The name in parentheses may hold anything; field 3 follows the last one, the start time is field 22.
    fields = frames.stats[pid].rpartition(")")[2].split()
    if not fields:
        return False
    if len(fields) < 20 or not isinstance(start, int):
        return None
    return fields[0] not in ("Z", "X") and int(fields[19]) == start


def _agent(frames: _Frames) -> AgentReading | None:
    if frames.agent is None:
        return AgentReading(running=False, tree_hash=None, attempt=None, pod_id=None, heartbeat=None)
    value = _object(frames.agent)
    about = value.get("agent") if value is not None else None
    if value is None or not isinstance(about, dict) or value.get("format") != 1:
        return None
    cells: dict[str, AgentCell] = {}
    for uid, entry in (value.get("cells") or {}).items():
        cell = _cell(uid, entry)
        if cell is None:
            return None
        cells[uid] = cell
    return AgentReading(
        running=_alive(about.get("pid"), about.get("procStart"), frames) is True,
        tree_hash=_text(about.get("treeHash")),
        attempt=_text(about.get("attempt")),
        pod_id=_text(about.get("podId")),
        heartbeat=_time(about.get("heartbeat")),
        cells=cells,
        problem=_text(about.get("problem")),
        timer=_timer(about.get("timer")),
    )


def _timer(value: Any) -> AgentTimer | None:
    if not isinstance(value, dict) or not isinstance(value.get("state"), str):
        return None
    return AgentTimer(_time(value.get("deadline")), value["state"], _text(value.get("message")))


def _cell(uid: str, entry: Any) -> AgentCell | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("state"), str):
        return None
    manifest, commit, error = (entry.get(part) or {} for part in ("manifest", "commit", "error"))
    if not all(isinstance(part, dict) for part in (manifest, commit, error)):
        return None
    return AgentCell(
        uid=uid,
        state=entry["state"],
        done_seen=entry.get("doneSeen") is True,
        manifest_digest=_text(manifest.get("digest")),
        manifest_files=_count(manifest.get("files")),
        manifest_bytes=_count(manifest.get("bytes")),
        manifest_taken_at=_time(manifest.get("takenAt")),
        commit_oid=_text(commit.get("oid")),
        commit_at=_time(commit.get("at")),
        error_class=_text(error.get("class")),
        error_message=_text(error.get("message")),
        error_exit=_count(error.get("exit")),
        retry_at=_time(entry.get("retryAt")),
    )


def _object(text: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _time(value: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
