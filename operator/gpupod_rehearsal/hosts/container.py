"""What is inside a rented pod: the system directories it sees, its environment files, its SSH server's settings."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import asyncssh

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt")
_SBIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_HERE = Path(__file__).parent
_PASSWD = """\
root:x:0:0:root:/root:/bin/bash
sshd:x:110:65534::/run/sshd:/usr/sbin/nologin
nobody:x:65534:65534::/:/usr/sbin/nologin
"""
_SHADOW = "root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\nnobody:*:19000:0:99999:7:::\n"
_GROUP = "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"
_SSHD_CONFIG = """\
ListenAddress {address}
Port {port}
HostKey /etc/ssh/ssh_host_ed25519_key
AuthorizedKeysFile /root/.ssh/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PidFile none
PrintMotd no
PrintLastLog no
MaxStartups 100
MaxSessions 100
Subsystem sftp internal-sftp
"""

File = tuple[str, int, str]


def find_sshd() -> str | None:
    """OpenSSH's server, where it is installed."""
    return shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")


def read_only_directories() -> list[str]:
    """System directories and this interpreter's prefixes: the pod's python3 is the one that runs the rehearsal."""
    wanted = [path for path in _SYSTEM if Path(path).exists()]
    for prefix in (sys.base_prefix, sys.prefix, sys.exec_prefix):
        if not any(Path(prefix).is_relative_to(path) for path in wanted):
            wanted.append(prefix)
    return wanted


def new_host_key() -> tuple[str, str]:
    """A fresh ed25519 host key: the private part in OpenSSH form, and the public line."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    return key.export_private_key().decode(), key.export_public_key().decode().strip()


def files(
    hostname: str,
    env: Mapping[str, str],
    authorized_keys: Sequence[str],
    host_key: str,
    address: tuple[str, int],
) -> list[File]:
    """Files of the pod as (path, mode, text).

    Like the start script of RunPod's images, the container's variables go to `/etc/rp_environment`, which `.bashrc`
    sources; bash reads that for commands that come over SSH, too.
    """
    path = f"{sys.prefix}/bin:{_SBIN}"
    exports = "".join(
        f"export {name}={shlex.quote(value)}\n"
        for name, value in {**env, "PATH": path}.items()
        if name.isidentifier() and name != "PUBLIC_KEY"
    )
    bashrc = "source /etc/rp_environment\n"
    return [
        ("/etc/passwd", 0o644, _PASSWD),
        ("/etc/shadow", 0o600, _SHADOW),
        ("/etc/group", 0o644, _GROUP),
        ("/etc/hostname", 0o644, f"{hostname}\n"),
        ("/etc/hosts", 0o644, f"127.0.0.1 localhost {hostname}\n"),
        ("/etc/rp_environment", 0o600, exports),
        ("/var/log/lastlog", 0o600, ""),
        ("/root/.bashrc", 0o600, bashrc),
        ("/root/.bash_profile", 0o600, bashrc),
        ("/root/.ssh/authorized_keys", 0o600, "".join(f"{key.strip()}\n" for key in authorized_keys)),
        ("/etc/ssh/ssh_host_ed25519_key", 0o600, host_key),
        ("/etc/ssh/sshd_config", 0o600, _SSHD_CONFIG.format(address=address[0], port=address[1])),
        *(
            (f"/run/gpupod/{name}", 0o600, (_HERE / name).read_text(encoding="utf-8"))
            for name in ("init.py", "ssh_server.py")
        ),
    ]


def init_command(address: tuple[str, int], sshd: str | None) -> list[str]:
    """The pod's PID 1, with the SSH server it is to run: OpenSSH's, or ours on asyncssh."""
    python = f"{sys.prefix}/bin/python3"
    if sshd is not None:
        server = [sshd, "-D", "-e", "-f", "/etc/ssh/sshd_config"]
    else:
        server = [python, "-I", "/run/gpupod/ssh_server.py", "/run/gpupod/ssh_server.json"]
    settings = json.dumps({"address": address[0], "port": address[1], "server": server})
    return [python, "-I", "-S", "/run/gpupod/init.py", settings]
