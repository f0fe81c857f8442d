"""Starting a workload once, and ending it: scripts in POSIX sh.

The recorded process writes its own record and then becomes the workload, so there is no moment at which a workload
runs without one. A supervisor in a session of its own waits for it and writes the exit record.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from gpupod_operator.shell.layout import PodLayout, plain
from gpupod_operator.shell.snippets import PAUSE, START_OF, container_environment

CHECK_TAIL_BYTES = 2000
RECORD_WAIT_TENTHS = 150
"""How long a started workload may take to write its record, in tenths of a second."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What is started. `log_file` relative ones lie below the work folder; None is `workload.log` beside the record."""

    attempt: str
    launch_id: str
    pod_id: str
    pod_started_at: str
    command: Sequence[str]
    check: Sequence[str]
    log_file: str | None


_RUN = r"""#!/bin/sh
# Written by the gpupod operator. Records itself, then becomes the workload.
{start_of}
{environment}
gp_start=$(start_of $$) || exit 126
{{
  printf '%s' {record}
  printf ',"pgid":%s,"pid":%s,"procStart":%s,"startedAt":"%s"}}' $$ $$ "$gp_start" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
}} > {folder}/launch.json.new && mv -f {folder}/launch.json.new {folder}/launch.json || exit 126
cd {work} || exit 126
exec {command}
"""

_SUPERVISOR = r"""#!/bin/sh
# Written by the gpupod operator. Waits for the workload and records how it ended.
trap '' HUP
setsid sh {folder}/run.sh >> {log} 2>&1 < /dev/null &
wait $!
gp_code=$?
printf '{{"at":"%s","code":%s,"launchId":%s}}' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$gp_code" {launch_id} \
  > {folder}/exit.json.new && mv -f {folder}/exit.json.new {folder}/exit.json
"""

_LAUNCH = r"""
set -u
umask 022
{start_of}
{pause}
[ -r /proc/self/stat ] || {{ echo 'UNKNOWN /proc cannot be read'; exit 0; }}
command -v setsid > /dev/null || {{ echo 'UNKNOWN setsid (util-linux or busybox) is missing in the image'; exit 0; }}
mkdir -p {folder} || {{ echo 'UNKNOWN {folder} cannot be made'; exit 0; }}
gp_turn={root}/launching
take_turn() {{ (set -C; echo "$$ $(start_of $$)" > "$gp_turn") 2> /dev/null; }}
if ! take_turn; then
  {{ read -r gp_pid gp_started < "$gp_turn"; }} 2> /dev/null
  if [ "$(start_of "${{gp_pid:-0}}")" = "${{gp_started:-none}}" ]; then
    echo 'UNKNOWN another launch is under way'
    exit 0
  fi
  rm -f "$gp_turn"
  take_turn || {{ echo 'UNKNOWN another launch is under way'; exit 0; }}
fi
trap 'rm -f "$gp_turn"' EXIT
for gp_file in {root}/*/launch.json; do
  [ -f "$gp_file" ] || continue
  gp_pid=$(number_in pid "$gp_file")
  gp_started=$(number_in procStart "$gp_file")
  [ -n "$gp_pid" ] && [ -n "$gp_started" ] || {{ echo "UNKNOWN $gp_file cannot be read"; exit 0; }}
  if [ "$(start_of "$gp_pid")" = "$gp_started" ]; then echo "RUNNING $gp_pid"; exit 0; fi
  if grep -qF {id_text} "$gp_file"; then echo "RAN $gp_pid"; exit 0; fi
done
{check}
rm -f {folder}/exit.json
printf '%s' {run} > {folder}/run.sh
printf '%s' {supervisor} > {folder}/supervisor.sh
printf '%s' {log} > {folder}/log.path
mkdir -p "$(dirname {log})" && : >> {log} || {{ echo 'UNKNOWN the log file cannot be written'; exit 0; }}
setsid sh {folder}/supervisor.sh > /dev/null 2> {folder}/supervisor.log < /dev/null &
gp_left={tenths}
while [ "$gp_left" -gt 0 ]; do
  if grep -qF {id_text} {folder}/launch.json 2> /dev/null; then echo STARTED; exit 0; fi
  if [ -f {folder}/exit.json ]; then
    echo "UNKNOWN the workload ended before its record: $(cat {folder}/exit.json)"; exit 0
  fi
  gp_left=$((gp_left - 1))
  pause
done
echo 'UNKNOWN the workload wrote no record in time'
"""

_CHECK = r"""
(
{environment}
cd {work} || exit 126
if command -v timeout > /dev/null; then exec timeout {seconds} {command}; else exec {command}; fi
) > {folder}/check.log 2>&1 < /dev/null
gp_code=$?
if [ "$gp_code" -ne 0 ]; then
  echo "REFUSED $gp_code"
  tail -c {tail} {folder}/check.log
  exit 0
fi
"""

_DRAIN = r"""
{start_of}
{pause}
gp_file={folder}/launch.json
[ -f "$gp_file" ] || {{ echo NONE; exit 0; }}
gp_pid=$(number_in pid "$gp_file")
gp_started=$(number_in procStart "$gp_file")
gp_group=$(number_in pgid "$gp_file")
[ -n "$gp_pid" ] && [ -n "$gp_started" ] && [ -n "$gp_group" ] || {{ echo UNREADABLE; exit 0; }}
gp_now=$(start_of "$gp_pid")
# A pid is not given away while a group or session has that number: another process there means that ours is gone.
if [ -n "$gp_now" ] && [ "$gp_now" != "$gp_started" ]; then echo NONE; exit 0; fi
members() {{
  for gp_dir in /proc/[0-9]*; do
    {{ read -r gp_stat < "$gp_dir/stat"; }} 2> /dev/null || continue
    gp_stat=${{gp_stat##*) }}
    set -- $gp_stat
    case $1 in Z|X) continue ;; esac
    if [ "$3" = "$gp_group" ] || [ "$4" = "$gp_group" ]; then echo "${{gp_dir#/proc/}}"; fi
  done
}}
ended_within() {{ # tenths of a second
  gp_until=$(( $(date +%s) + $1 / 10 ))
  while [ -n "$(members)" ]; do
    [ "$(date +%s)" -lt "$gp_until" ] || return 1
    pause
  done
}}
[ -n "$(members)" ] || {{ echo NONE; exit 0; }}
kill -s TERM -- "-$gp_group" 2> /dev/null
kill -s CONT -- "-$gp_group" 2> /dev/null
if ended_within {grace}; then echo ENDED; exit 0; fi
kill -s KILL -- "-$gp_group" $(members) 2> /dev/null
if ended_within 100; then echo KILLED; exit 0; fi
echo "LEFT $(members | tr '\n' ' ')"
"""


def launch_script(layout: PodLayout, launch: Launch, *, check_seconds: int) -> str:
    """The script; its first line of output is STARTED, RUNNING, RAN, `REFUSED code` (then the tail) or UNKNOWN why.

    Raises ValueError for an attempt or launch id that is not a plain word, or an empty command.
    """
    if not launch.command:
        raise ValueError("a launch needs a command")
    folder = layout.launch_folder(launch.attempt)
    log = _log_path(layout, folder, launch.log_file)
    record = {
        "attempt": launch.attempt,
        "command": list(launch.command),
        "launchId": plain(launch.launch_id),
        "logFile": log,
        "podId": launch.pod_id,
        "podStartedAt": launch.pod_started_at,
    }
    quoted = {"folder": shlex.quote(folder), "work": shlex.quote(layout.work), "log": shlex.quote(log)}
    run = _RUN.format(
        start_of=START_OF,
        environment=container_environment(),
        record=shlex.quote(json.dumps(record, separators=(",", ":"), sort_keys=True)[:-1]),
        command=shlex.join(launch.command),
        **quoted,
    )
    supervisor = _SUPERVISOR.format(launch_id=shlex.quote(json.dumps(launch.launch_id)), **quoted)
    check = ""
    if launch.check:
        check = _CHECK.format(
            environment=container_environment(),
            command=shlex.join(launch.check),
            seconds=check_seconds,
            tail=CHECK_TAIL_BYTES,
            **quoted,
        )
    return _LAUNCH.format(
        start_of=START_OF,
        pause=PAUSE,
        root=shlex.quote(layout.root),
        id_text=shlex.quote(f'"launchId":{json.dumps(launch.launch_id)}'),
        check=check,
        run=shlex.quote(run),
        supervisor=shlex.quote(supervisor),
        tenths=RECORD_WAIT_TENTHS,
        **quoted,
    )


def drain_script(layout: PodLayout, attempt: str, grace_seconds: int) -> str:
    """The script; it prints NONE, ENDED, KILLED, `LEFT pids` or UNREADABLE."""
    folder = shlex.quote(layout.launch_folder(attempt))
    return _DRAIN.format(start_of=START_OF, pause=PAUSE, folder=folder, grace=grace_seconds * 10)


def _log_path(layout: PodLayout, folder: str, log_file: str | None) -> str:
    if log_file is None:
        return f"{folder}/workload.log"
    return log_file if log_file.startswith("/") else f"{layout.work}/{log_file}"
