"""Pieces of POSIX sh that the scripts share. dash and busybox are enough; no Python is needed on the pod."""

from __future__ import annotations

START_OF = r"""
# Start time of a live process, in clock ticks; a pid alone may have been given to another process since.
start_of() {
  { read -r gp_stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  gp_stat=${gp_stat##*) }
  set -- $gp_stat
  case $1 in Z|X) return 1 ;; esac
  echo "${20}"
}
number_in() {
  grep -o "\"$1\": *[0-9][0-9]*" "$2" 2>/dev/null | head -n 1 | grep -o '[0-9]*$'
}
"""

PAUSE = r"""
pause() { sleep 0.1 2>/dev/null || sleep 1; }
"""

_ENVIRONMENT = r"""
# An SSH session does not inherit the container's environment; the workload is written for it.
set +u
gp_keep_home=${HOME:-/root}
if [ -r @exported ]; then . @exported; fi
# Newlines inside of values are set aside while sed works line by line (busybox has no sed -z).
gp_environment=$( { tr '\n\000' '\001\n' < @init; } 2> /dev/null |
  sed -n -e '/^[A-Z]*\(PID\|UID\|SHELLOPTS\|BASHOPTS\|BASH_VERSINFO\|GROUPS\)=/d' \
    -e "s/'/'\\\\''/g; s/^\([A-Za-z_][A-Za-z0-9_]*\)=\(.*\)\$/export \1='\2'/p" | tr '\001' '\n')
eval "$gp_environment"
HOME=$gp_keep_home
export HOME
unset gp_environment gp_keep_home PWD OLDPWD SHLVL
"""


def container_environment(init: str = "/proc/1/environ", exported: str = "/etc/rp_environment") -> str:
    """Takes over the environment of the container's first process, and what RunPod's images export for SSH sessions.

    Nothing of it appears in argv. Variables a shell keeps to itself (PPID, UID and the like) are left out.
    """
    return _ENVIRONMENT.replace("@init", init).replace("@exported", exported)
