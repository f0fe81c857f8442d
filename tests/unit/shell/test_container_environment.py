from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gpupod_operator.shell.snippets import container_environment


@pytest.mark.parametrize("sh", [["dash"], ["bash"], ["busybox", "sh"]])
def test_every_value_arrives_whatever_is_in_it(tmp_path: Path, sh: list[str]) -> None:
    if shutil.which(sh[0]) is None:
        pytest.skip(f"needs {sh[0]}")
    values = {
        "PLAIN": "x",
        "QUOTES": 'it\'s "so"',
        "LINES": "one\ntwo\n\nthree",
        "HARM": "$(touch harm) `touch harm` $HOME \\ & | ;",
        "EMPTY": "",
        "EQUALS": "a=b=c",
        "MY_UID": "kept",
    }
    foreign = {"PPID": "1", "UID": "0", "EUID": "0", "BASHOPTS": "x", "not-a-name": "x", "HOME": "/elsewhere"}
    init = tmp_path / "environ"
    init.write_text("".join(f"{name}={value}\0" for name, value in {**values, **foreign}.items()))
    script = container_environment(str(init), str(tmp_path / "none")) + "\nexec env -0"
    seen = subprocess.run(
        [*sh, "-c", script],
        env={"PATH": "/usr/bin:/bin", "HOME": "/root"},
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    found = dict(entry.split("=", 1) for entry in seen.stdout.decode().split("\0") if entry)
    assert {name: found.get(name) for name in values} == values
    assert found["HOME"] == "/root"
    assert seen.stderr == b""
    assert not (tmp_path / "harm").exists()


def test_what_runpod_exports_for_ssh_sessions_is_taken_over(tmp_path: Path) -> None:
    exported = tmp_path / "rp_environment"
    exported.write_text('export RUNPOD_POD_ID="pod1"\n')
    script = container_environment(str(tmp_path / "none"), str(exported)) + '\necho "$RUNPOD_POD_ID"'
    seen = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True)
    assert seen.stdout == "pod1\n"
