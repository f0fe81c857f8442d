"""The shipped manifests, and the demo's overlay over the samples (JSON patches, visible in manifests/overlays/demo)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import jsonpatch
import yaml

Manifest = dict[str, Any]


def folder(name: str) -> Path:
    """`crds` or `manifests`, as shipped in the package or from the checkout that it runs from."""
    package = "gpupod_operator" if name == "crds" else "gpupod_rehearsal"
    packaged = Path(str(resources.files(package))) / name
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / name


def documents(*files: Path) -> Iterator[Manifest]:
    """Every document of these YAML files, in order."""
    for file in files:
        yield from (d for d in yaml.safe_load_all(file.read_text(encoding="utf-8")) if d)


def crds() -> list[Manifest]:
    """The two CustomResourceDefinitions."""
    return [d for d in documents(*sorted(folder("crds").glob("*.yaml"))) if d["kind"] == "CustomResourceDefinition"]


def rbac() -> list[Manifest]:
    """ServiceAccount, roles and bindings, exactly as they ship."""
    return list(documents(folder("manifests") / "base" / "rbac.yaml"))


def samples() -> list[Manifest]:
    """manifests/samples with manifests/overlays/demo applied, as `kubectl kustomize` would print them."""
    overlay = folder("manifests") / "overlays" / "demo"
    objects = list(documents(*(folder("manifests") / "samples" / n for n in ("gpupod.yaml", "sweepcells.yaml"))))
    for entry in yaml.safe_load((overlay / "kustomization.yaml").read_text(encoding="utf-8"))["patches"]:
        patch = jsonpatch.JsonPatch(yaml.safe_load((overlay / entry["path"]).read_text(encoding="utf-8")))
        target = entry["target"]
        for index, item in enumerate(objects):
            if (
                item["kind"] == target["kind"]
                and target.get("name", item["metadata"]["name"]) == item["metadata"]["name"]
            ):
                objects[index] = patch.apply(copy.deepcopy(item))
    return objects
