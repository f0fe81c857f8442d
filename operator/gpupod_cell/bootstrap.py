"""Finds a Python that can run the agent, or makes one, and becomes it.

Started as a plain file by whatever `python3` is on the pod, so it uses no syntax newer than Python 3.6 and nothing but
the standard library. Where it fails, state.json says why and what to add to the image.
"""

import argparse
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time

HUB_PIN = "huggingface_hub==2.4.0"
NEEDS = "Python 3.10 or newer with huggingface_hub 1.30 or newer"
PIP_SECONDS = 600
TRIES = 3
PROBE = (
    "import sys\n"
    "if sys.version_info < (3, 10): sys.exit('python is %d.%d' % sys.version_info[:2])\n"
    "import huggingface_hub\n"
    "v = tuple(int(p) for p in huggingface_hub.__version__.split('.')[:2])\n"
    "if v < (1, 30): sys.exit('huggingface_hub is ' + huggingface_hub.__version__)\n"
    "from huggingface_hub import set_client_factory\n"
)
OLD = "import sys; sys.exit(0 if sys.version_info >= (3, 10) else 1)"


def main():
    """Become the loop under a Python that can run it, or report why there is none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=os.environ.get("GPUPOD_ROOT") or "/workspace/.gpupod")
    parser.add_argument("--every", default="3")
    given = parser.parse_args()
    agent = os.path.join(given.root, "agent")
    os.makedirs(agent, exist_ok=True)
    held = _take_turn(agent)
    if held is None:
        print("bootstrap: another process waits to become the loop already", flush=True)
        return 0
    python, problem = find_python(given.root)
    if python is None:
        print("bootstrap: " + problem, flush=True)
        _report(agent, problem)
        return 1
    home = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    environment = dict(os.environ, PYTHONPATH=home, GPUPOD_ROOT=given.root)
    if held >= 0:
        os.set_inheritable(held, True)
        environment["GPUPOD_NEXT_LOCK_FD"] = str(held)
    sys.stdout.flush()
    os.execve(python, [python, "-m", "gpupod_cell", "watch", "--every", given.every], environment)  # noqa: S606


def find_python(root, log=print):
    """Path of a Python that can run the agent, and why there is none."""
    venv = os.path.join(root, "venv", "bin", "python")
    reasons = []
    able = None
    for python in [venv] + _candidates():
        if not os.access(python, os.X_OK):
            continue
        answer = _run([python, "-c", PROBE], 60)
        if answer is None:
            return python, ""
        reasons.append(python + ": " + answer)
        if able is None and python != venv and _run([python, "-c", OLD], 30) is None:
            able = python
    if able is None:
        return None, "no Python 3.10 or newer on this pod (%s); the agent needs %s: add it to the image" % (
            "; ".join(reasons) or "no python at all",
            NEEDS,
        )
    failure = _make_venv(able, root, log)
    if failure is None:
        return venv, ""
    return None, "%s; making a venv with %s failed: %s; add huggingface_hub to the image (pip install '%s')" % (
        "; ".join(reasons)[:300],
        able,
        failure,
        HUB_PIN,
    )


def _candidates():
    names = ["python3"] + ["python3.%d" % minor for minor in range(14, 9, -1)] + ["python"]
    found = [sys.executable] + [shutil.which(name) for name in names]
    found += ["/opt/conda/bin/python", "/usr/local/bin/python3", "/usr/bin/python3", "/venv/bin/python"]
    found += ["/workspace/venv/bin/python"]
    return list(dict.fromkeys(path for path in found if path))


def _make_venv(python, root, log):
    """None when it works, else why not. A half-made venv is never left under the final name."""
    target = os.path.join(root, "venv")
    # pip writes absolute paths into scripts only; the interpreter link and site-packages survive the rename.
    made = os.path.join(root, "venv.new")
    failure = "not tried"
    for attempt in range(TRIES):
        shutil.rmtree(made, ignore_errors=True)
        log("bootstrap: making a venv with %s (try %d of %d)" % (python, attempt + 1, TRIES))
        failure = _run([python, "-m", "venv", made], 120)
        if failure is not None and _run([python, "-m", "pip", "--version"], 60) is None:
            failure = _run([python, "-m", "venv", "--without-pip", made], 120)
            pip = [python, "-m", "pip", "--python", os.path.join(made, "bin", "python")]
        else:
            pip = [os.path.join(made, "bin", "python"), "-m", "pip"]
        if failure is None:
            failure = _run(pip + ["install", "--no-input", "--disable-pip-version-check", HUB_PIN], PIP_SECONDS)
        if failure is None:
            shutil.rmtree(target, ignore_errors=True)
            os.rename(made, target)
            return _run([os.path.join(target, "bin", "python"), "-c", PROBE], 60)
        time.sleep(5 * attempt)
    shutil.rmtree(made, ignore_errors=True)
    return failure


def _run(command, seconds):
    """None when it succeeds, else the last line it said."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return "no end after %d s" % seconds
    except OSError as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return lines[-1][-300:] if lines else "exit %d" % done.returncode


def _take_turn(agent):
    """A descriptor that holds lock.next, None when another process does, -1 where the file system has no locks."""
    handle = os.open(os.path.join(agent, "lock.next"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:
        os.close(handle)
        return -1
    return handle


def _report(agent, problem):
    path = os.path.join(agent, "state.json")
    try:
        with open(path) as source:
            cells = json.load(source)["cells"]
    except (OSError, ValueError, KeyError, TypeError):
        cells = {}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    about = dict.fromkeys(("pid", "procStart", "treeHash", "podId", "attempt", "hubEndpoint"))
    about = dict(about, heartbeat=now, problem=problem)
    partial = path + ".bootstrap"
    with open(partial, "w") as out:
        json.dump({"format": 1, "agent": about, "cells": cells}, out, sort_keys=True, separators=(",", ":"))
    os.replace(partial, path)


if __name__ == "__main__":
    sys.exit(main())
