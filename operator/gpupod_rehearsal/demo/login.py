"""Log in to the pod with plain `ssh -F` on the rendered files, as a person would."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
from typing import TYPE_CHECKING

from gpupod_rehearsal.demo.stage import NAMESPACE, SYSTEM, Stage

if TYPE_CHECKING:
    from gpupod_rehearsal.demo.acts import Story


async def log_in(stage: Stage, story: Story) -> str | None:
    """What the pod answered to `ssh -F ssh_config sweep hostname`; None when not rendered for the new pod yet."""
    conf = await stage.kube.get("v1", "ConfigMap", "pods-conf", NAMESPACE)
    secret = await stage.kube.get("v1", "Secret", f"ssh-{NAMESPACE}", SYSTEM)
    pod = story.pod.get("status") or {}
    endpoint = (pod.get("endpoint") or {}).get("address")
    if conf is None or secret is None or endpoint is None:
        return None
    host, _, port = endpoint.rpartition(":")
    row = next((line.split() for line in conf["data"]["pods.conf"].splitlines() if line.startswith("sweep")), None)
    if row is None or (row[1], row[2]) != (host, port):
        return None
    ssh = shutil.which("ssh")
    if ssh is None:
        return "(no ssh on this machine)"
    folder = stage.login_folder
    folder.mkdir(exist_ok=True)
    (folder / "known_hosts").write_text(conf["data"]["known_hosts"])
    key = folder / "id"
    key.unlink(missing_ok=True)
    with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(base64.b64decode(secret["data"]["ssh-privatekey"]))
    (folder / "ssh_config").write_text(conf["data"]["ssh_config"])
    process = await asyncio.create_subprocess_exec(
        ssh,
        "-F",
        str(folder / "ssh_config"),
        "sweep",
        "echo logged in as $(id -un), $(ls -d /workspace/.gpupod | wc -l) agent on the pod",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    if process.returncode != 0:
        return f"FAILED ({process.returncode}): {err.decode(errors='replace').strip()[-300:]}"
    return f"ssh -F ssh_config sweep: {out.decode(errors='replace').strip()} ({endpoint})"
