"""Puts the CRDs and the manifests into a wheel.

An editable install must not get a copy: it would shadow the checkout's files and go stale at the first edit.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_INCLUDED = {"crds": "gpupod_operator/crds", "manifests": "gpupod_rehearsal/manifests"}


class ShipManifests(BuildHookInterface):  # type: ignore[type-arg]
    """Maps the two folders of YAML into the packages that read them."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        for folder, inside in _INCLUDED.items():
            source = Path(self.root) / folder
            if not source.is_dir():
                raise FileNotFoundError(f"{source} is missing: a wheel without it could not be installed in a cluster")
            build_data["force_include"][str(source)] = inside
