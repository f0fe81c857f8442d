"""What of a person's file is ours: a marked block of an ssh config, and some keys of an MCP file. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from gpupod_operator.render.mcp_env import key_stems, mcp_env
from gpupod_operator.render.rows import Row
from gpupod_operator.render.ssh_config import SshPaths, ssh_config

BEGIN = "# --- BEGIN MANAGED POD CONFIG ---"
END = "# --- END MANAGED POD CONFIG ---"
"""The markers of the scripts that pods.conf comes from, so that their block is taken over and not doubled."""

SERVERS, SERVER = "mcpServers", "ssh"
OURS = "GPUPOD_SSH_SERVERS"
"""Variable of the MCP server's environment with the `SSH_SERVER_*` stems that we wrote: no other is removed."""


def with_block(text: str, rows: Sequence[Row], paths: SshPaths) -> str:
    """The ssh config with our block in its place, or at its end. Raises ValueError for markers that do not pair up.

    At the end, because options above the first `Host` line hold for all hosts and must stay above it.
    """
    lines = text.splitlines(keepends=True)
    marks = [(number, line.strip()) for number, line in enumerate(lines) if line.strip() in (BEGIN, END)]
    block = f"{BEGIN}\n{ssh_config(rows, paths)}{END}\n"
    if not marks:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}{block}" if rows else text
    if [mark for _, mark in marks] != [BEGIN, END]:
        raise ValueError(f"the lines {BEGIN!r} and {END!r} do not stand there once each, in this order")
    (first, _), (last, _) = marks
    return "".join((*lines[:first], block, *lines[last + 1 :]))


def with_servers(text: str, rows: Sequence[Row], paths: SshPaths) -> str:
    """The MCP file with one server's variables for each row; rows that went take theirs along, all else stays.

    Raises ValueError for what is no MCP file with a server `ssh`: making one up would start a program nobody chose.
    """
    try:
        document = json.loads(text)
    except ValueError:
        raise ValueError("it is not JSON") from None
    servers = document.get(SERVERS) if isinstance(document, dict) else None
    server = servers.get(SERVER) if isinstance(servers, dict) else None
    if not isinstance(server, dict) or not isinstance(server.get("env", {}), dict):
        raise ValueError(f"it has no server {SERVER!r} under {SERVERS!r}")  # noqa: TRY004 - of a file's content
    env = server.get("env", {})
    stems = sorted(key_stems(rows).values())
    gone = {stem for stem in str(env.get(OURS, "")).split() if stem not in stems}
    kept = {key: value for key, value in env.items() if not _belongs(key, gone)}
    fresh = mcp_env(rows, paths) | {OURS: " ".join(stems)} if rows else {}
    if not rows:
        kept.pop(OURS, None)
    if kept | fresh == env:
        return text  # also where it is laid out in another way than we would
    server["env"] = kept | fresh
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _belongs(key: str, stems: set[str]) -> bool:
    match = re.fullmatch(r"(SSH_SERVER_.+)_(HOST|PORT|USER|KEYPATH|DEFAULT_DIR|PLATFORM|DESCRIPTION)", key)
    return match is not None and match.group(1) in stems
