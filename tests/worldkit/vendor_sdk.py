"""RunPod's own Python SDK, unmodified, in a virtual environment of its own: a client that owes nothing to this project.

It is 100 packages from PyPI, pinned with hashes in `runpod-sdk.lock`, and is installed once into the user's cache.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

LOCK = Path(__file__).with_name("runpod-sdk.lock")
INSTALL_SECONDS = 600

_ASK = """
import json, os, sys
import runpod

runpod.api_key = os.environ["RUNPOD_API_KEY"]

def ask(name, *arguments):
    try:
        return {"answer": getattr(runpod, name)(*arguments)}
    except (runpod.error.RunPodError, ValueError) as error:
        return {"error": type(error).__name__, "message": str(error)}

print(json.dumps({"version": runpod.__version__, "answers": [ask(*call) for call in json.load(sys.stdin)]}))
"""


class NotInstalled(RuntimeError):
    """The SDK cannot be had here; the message is what pip said last."""


class VendorSdk:
    """Calls of the SDK's functions, as a user's program makes them, in a process of their own that ends with them."""

    def __init__(self, python: Path, home: Path, *, url: str, key: str) -> None:
        self.version = ""
        self._python = python
        # `requests` would take a proxy from the environment to loopback; the SDK reads ~/.runpod
        self._env = {"PATH": os.defpath, "HOME": str(home), "RUNPOD_API_BASE_URL": url, "RUNPOD_API_KEY": key}

    async def ask(self, *calls: tuple[Any, ...]) -> list[dict[str, Any]]:
        """For each `(function, *arguments)` of `runpod` either `answer`, or `error` (its class) and `message`."""
        child = await asyncio.create_subprocess_exec(
            str(self._python),
            "-c",
            _ASK,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._env,
        )
        out, err = await asyncio.wait_for(child.communicate(json.dumps(calls).encode()), timeout=120)
        if child.returncode != 0:
            raise AssertionError(f"the SDK's process ended with {child.returncode}: {err.decode()[-2000:]}")
        told = json.loads(out)
        self.version = told["version"]
        return list(told["answers"])


def installed() -> Path:
    """The Python that has the SDK. Installs it when this lock file was not installed yet. Raises NotInstalled."""
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "gpupod" / "runpod-sdk" / f"{digest}-py{sys.version_info.major}.{sys.version_info.minor}"
    python, complete = folder / "bin" / "python", folder / ".complete"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("a") as guard:
        # the kernel drops it with its holder; whoever comes second finds the work done
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (complete.exists() and os.access(python, os.X_OK)):
            shutil.rmtree(folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(folder)])
            _run([str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(LOCK)])
            complete.touch()
    return python


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().splitlines()
        raise NotInstalled(said[-1] if said else f"{command[0]} ended with {error.returncode}") from None
    except (subprocess.TimeoutExpired, OSError) as error:
        raise NotInstalled(str(error)) from None
