"""Putting the agent on a pod and starting it: one script, with tokens and tree on its stdin."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from gpupod_operator.shell.layout import PodLayout, plain
from gpupod_operator.shell.snippets import container_environment
from gpupod_operator.shell.tree import AgentTree

_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")
_LOG_BYTES = 4 * 1024 * 1024

NO_PYTHON = (
    "there is no Python on this pod; the agent needs Python 3.10 or newer with huggingface_hub: "
    "add them to the image, or use an image that has them"
)

_INSTALL = r"""
set -u
umask 022
fail() { echo "FAILED $1"; exit 0; }
mkdir -p "$root/agent/trees" "$secrets" || fail "$root/agent cannot be made"
chmod 700 "$secrets"
gp_ended=no
while read -r gp_uid gp_token; do
  if [ "$gp_uid" = end ]; then gp_ended=yes; break; fi
  gp_file=$secrets/token-$gp_uid
  # An unchanged token keeps its time: a new one makes the agent try refused cells again.
  if [ "$(cat "$gp_file" 2> /dev/null)" != "$gp_token" ]; then
    (umask 077; printf %s "$gp_token" > "$gp_file.new") && mv -f "$gp_file.new" "$gp_file" ||
      fail 'a token cannot be written'
  fi
done
[ "$gp_ended" = yes ] || fail 'the input was cut short'
gp_python=''
for gp_name in python3 python /opt/conda/bin/python /usr/local/bin/python3; do
  if command -v "$gp_name" > /dev/null; then gp_python=$(command -v "$gp_name"); break; fi
done
gp_tree=$root/agent/trees/$hash
if [ "$(cat "$gp_tree/VERSION" 2> /dev/null)" != "$hash" ]; then
  gp_new=$root/agent/trees/.new.$$
  rm -rf "$root"/agent/trees/.new.*
  mkdir -p "$gp_new"
  if command -v tar > /dev/null; then
    tar -x -f - -C "$gp_new" || fail 'the tree cannot be unpacked'
  elif [ -n "$gp_python" ]; then
    "$gp_python" -c 'import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode="r|").extractall(sys.argv[1])' \
      "$gp_new" || fail 'the tree cannot be unpacked'
  else
    fail 'neither tar nor Python is on this pod'
  fi
  [ "$(cat "$gp_new/VERSION" 2> /dev/null)" = "$hash" ] || fail 'the tree arrived incomplete'
  rm -rf "$gp_tree"
  mv "$gp_new" "$gp_tree" || fail 'the tree cannot be put in place'
fi
put() { printf '%s' "$2" > "$1.new" && mv -f "$1.new" "$1" || fail "$1 cannot be written"; }
put "$root/agent/settings.json" "$settings"
ln -sfn "trees/$hash/gpupod_cell" "$root/agent/gpupod_cell"
put "$root/agent/VERSION" "$hash
"
rm -f "$root/agent/stop"
if [ -z "$gp_python" ]; then
  put "$root/agent/state.json" "$no_python_state"
  echo NOPYTHON
  exit 0
fi
gp_log=$root/agent/agent.log
if [ "$(wc -c < "$gp_log" 2> /dev/null || echo 0)" -gt "$log_bytes" ]; then mv -f "$gp_log" "$gp_log.1"; fi
"""

_START = r"""
GPUPOD_ROOT=$root GPUPOD_SECRETS=$secrets
export GPUPOD_ROOT GPUPOD_SECRETS
if command -v setsid > /dev/null; then gp_detach=setsid; else gp_detach=''; fi
# Not nohup, which busybox often lacks.
$gp_detach sh -c 'trap "" HUP; exec "$@"' sh "$gp_python" "$gp_tree/gpupod_cell/bootstrap.py" --root "$root" \
  >> "$gp_log" 2>&1 < /dev/null &
echo STARTED
"""


def install_script(layout: PodLayout, tree: AgentTree, settings: Mapping[str, Any]) -> str:
    """The script; it prints STARTED, NOPYTHON (the agent's problem is then in its state file) or `FAILED why`."""
    shown = {key: settings.get(key) for key in ("attempt", "hubEndpoint", "podId", "runpodEndpoint")}
    about = {
        "attempt": settings.get("attempt"),
        "heartbeat": None,
        "hubEndpoint": settings.get("hubEndpoint"),
        "pid": None,
        "podId": settings.get("podId"),
        "problem": NO_PYTHON,
        "procStart": None,
        "treeHash": tree.hash,
    }
    values = {
        "root": layout.root,
        "secrets": layout.secrets,
        "hash": tree.hash,
        "settings": json.dumps({"format": 1, **shown}, sort_keys=True),
        "no_python_state": json.dumps({"format": 1, "agent": about, "cells": {}}, sort_keys=True),
        "log_bytes": str(_LOG_BYTES),
    }
    head = "\n".join(f"{name}={shlex.quote(value)}" for name, value in values.items())
    return f"{head}\n{_INSTALL}\n{container_environment()}\n{_START}"


def install_payload(tree: AgentTree, settings: Mapping[str, Any]) -> bytes:
    """What follows on stdin: a line per token, `end`, then the tar. Raises ValueError, which never shows a token."""
    lines = []
    for uid, token in sorted((settings.get("tokens") or {}).items()):
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise ValueError(f"the token of cell {uid} is not one line of printable characters")
        lines.append(f"{plain(uid)} {token}\n")
    return "".join((*lines, "end\n")).encode() + tree.tar
