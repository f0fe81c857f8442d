"""The tails of a pod's logs, within a bound and without credentials."""

from __future__ import annotations

import shlex

from gpupod_operator.shell.layout import PodLayout
from gpupod_operator.shell.redact import redact

_AGENT_SHARE = 4
"""The agent's log gets a quarter of the room, the workload's the rest."""

_CUT = "(earlier lines were left out)"

_SCRIPT = r"""
LC_ALL=C; export LC_ALL
gp_log=$(cat "$folder/log.path" 2> /dev/null)
tail_of() { # title, path, bytes
  [ -f "$2" ] || { printf '\n==> %s: no such file <==\n' "$1"; return; }
  gp_size=$(wc -c < "$2" | tr -d ' ')
  printf '\n==> %s (%s bytes) <==\n' "$1" "$gp_size"
  if [ "$gp_size" -gt "$3" ]; then
    echo '(earlier lines were left out)'
    # The first line is cut somewhere, maybe inside a token, where nothing would recognise it any more.
    tail -c "$3" "$2" | tail -n +2
  else
    cat "$2"
  fi
}
tail_of "workload log ${gp_log:-of this attempt}" "${gp_log:-$folder/workload.log}" "$most_workload"
tail_of 'supervisor log' "$folder/supervisor.log" 4096
tail_of 'agent log' "$root/agent/agent.log" "$most_agent"
"""


def logs_script(layout: PodLayout, attempt: str, limit_bytes: int) -> str:
    """The script that prints the tails."""
    values = {
        "root": layout.root,
        "folder": layout.launch_folder(attempt),
        "most_agent": str(limit_bytes // _AGENT_SHARE),
        "most_workload": str(limit_bytes - limit_bytes // _AGENT_SHARE),
    }
    head = "\n".join(f"{name}={shlex.quote(value)}" for name, value in values.items())
    return f"{head}\n{_SCRIPT}"


def logs_text(output: bytes, limit_bytes: int) -> str:
    """The text as it may be stored: redacted, at most `limit_bytes` of UTF-8, cut at a line at its front."""
    text = redact(output.decode(errors="replace").replace("\x00", "")).strip() + "\n"
    data = text.encode()
    if len(data) <= limit_bytes:
        return text
    room = max(limit_bytes - len(_CUT) - 1, 0)
    tail = data[len(data) - room :].partition(b"\n")[2].decode(errors="ignore")
    return f"{_CUT}\n{tail}" if room else ""
