"""`ssh NAME [-- CMD]`: a session on the pod, with its host key pinned and the key from its Secret."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from gpupod_operator.cli.plugin.failure import Failed
from gpupod_operator.cli.plugin.kube import Kube, Refused
from gpupod_operator.render.known_hosts import known_hosts
from gpupod_operator.render.rows import PodObject, Row, pod_object, row_of
from gpupod_operator.render.ssh_config import SshPaths, ssh_config

PRIVATE = "ssh-privatekey"
"""The key's name in a Secret of type kubernetes.io/ssh-auth, and in the operator's own."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ssh", context_settings={"ignore_unknown_options": True})(ssh)


def ssh(
    context: typer.Context,
    name: str,
    command: Annotated[list[str] | None, typer.Argument(help="After --: run this instead of a shell.")] = None,
    identity: Annotated[
        Path | None, typer.Option("--identity", "-i", help="A private key of your own, instead of the Secret's.")
    ] = None,
    operator_namespace: Annotated[
        str, typer.Option(help="Where the operator keeps the key pairs that it makes.")
    ] = "gpupod-system",
) -> None:
    """Log in to the pod. The exit code is the command's."""
    kube: Kube = context.obj
    pod = pod_object(kube.pod(name))
    row, verdict = row_of(pod)
    if row is None:
        raise Failed(f"no endpoint for GpuPod {name}: {verdict.message}")
    if identity is not None:
        with files(row, None, identity) as config:
            raise typer.Exit(run(config, row, command or ()))
    with files(row, private_key(kube, pod, operator_namespace), None) as config:
        raise typer.Exit(run(config, row, command or ()))


def private_key(kube: Kube, pod: PodObject, operator_namespace: str) -> bytes:
    """The key that the operator itself logs in with. Raises Failed naming the Secret and the other way in."""
    ref = pod.spec.ssh.key_secret_ref
    secret, namespace = (ref.name, pod.namespace) if ref is not None else (f"ssh-{pod.namespace}", operator_namespace)
    try:
        data = kube.secret(secret, namespace)
    except Refused as refusal:
        raise Failed(f"{refusal}. If you have the key yourself: --identity FILE") from None
    if PRIVATE not in data:
        raise Failed(f"Secret {namespace}/{secret} has no key {PRIVATE}")
    return data[PRIVATE]


@contextmanager
def files(row: Row, key: bytes | None, identity: Path | None) -> Iterator[Path]:
    """ssh's files in a directory that only we can read, in memory where the machine has that; gone at the end."""
    with tempfile.TemporaryDirectory(prefix="gpupod-ssh-", dir=memory()) as folder:
        where = Path(folder)
        known = where / "known_hosts"
        known.write_text(known_hosts([row]), encoding="ascii")
        if key is not None:
            identity = where / "identity"
            # OpenSSH refuses a key without a newline at its end, and one that others can read
            _write_private(identity, key.rstrip() + b"\n")
        assert identity is not None
        config = where / "config"
        config.write_text(ssh_config([row], SshPaths(str(identity.expanduser()), str(known))), encoding="utf-8")
        yield config


def run(config: Path, row: Row, command: Sequence[str]) -> int:
    """Run ssh to its end; the key's directory outlives it, so it is no exec. Raises Failed without a client."""
    remote = [shlex.join(command)] if len(command) > 1 else list(command)
    # Ctrl-C is for the other side. A handler of ours ends with exec, where SIG_IGN would be inherited.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.run(["ssh", "-F", str(config), row.name, *remote], check=False).returncode
    except FileNotFoundError:
        raise Failed("there is no `ssh` on this machine") from None
    finally:
        signal.signal(signal.SIGINT, before)


def memory() -> str | None:
    """A directory that is no disk, or None for the usual one."""
    for place in (os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm"):  # noqa: S108 - made inside with mode 0700
        if place and os.access(place, os.W_OK | os.X_OK):
            return place
    return None


def _write_private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
