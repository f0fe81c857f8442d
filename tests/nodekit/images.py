"""Image archives for the node: the operator's, built from the Dockerfile, and the one that holds a pod open."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

from imagekit import engine
from nodekit.programs import PAUSE

ROOT = Path(__file__).parents[2]
OPERATOR = "ghcr.io/gpupod/gpupod-operator:v0.1.0"
"""As manifests/overlays/default name it."""
PAUSE_IMAGE = "gpupod.dev/pause:1"


def prepare(folder: Path) -> None:
    """Write `operator.tar` and `pause.tar`. Raises RuntimeError where no engine can build here."""
    found = engine.find()
    if isinstance(found, str):
        raise RuntimeError(found)  # noqa: TRY004 - a reason, and no wrong type
    found.build(ROOT, folder)
    store = list(found.builder[1:-1]) if found.name == "buildah" else []
    program = "buildah" if found.name == "buildah" else "docker"
    target = folder / "operator.tar"
    if program == "buildah":
        order = ["buildah", *store, "push", "--quiet", engine.IMAGE, f"docker-archive:{target}:{OPERATOR}"]
        subprocess.run(order, check=True, capture_output=True)
    else:
        subprocess.run(["docker", "tag", engine.IMAGE, OPERATOR], check=True, capture_output=True)
        subprocess.run(["docker", "save", "-o", str(target), OPERATOR], check=True, capture_output=True)
    write_pause(folder / "pause.tar")


def write_pause(target: Path) -> None:
    """An image FROM scratch with one static program that waits for a signal."""
    program = shutil.which(PAUSE)
    assert program is not None
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        entry = tarfile.TarInfo("pause")
        data = Path(program).read_bytes()
        entry.size, entry.mode = len(data), 0o755
        tar.addfile(entry, io.BytesIO(data))
    body = layer.getvalue()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/pause", "-P"], "User": "65535"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(body).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [PAUSE_IMAGE], "Layers": ["layer.tar"]}]
    with tarfile.open(target, "w") as tar:
        for name, content in (
            ("config.json", json.dumps(config).encode()),
            ("layer.tar", body),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
