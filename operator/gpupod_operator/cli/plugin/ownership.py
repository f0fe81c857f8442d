"""Who else writes this object's spec? What Argo CD or Flux applies, they will apply again."""

from __future__ import annotations

from typing import Any

import typer

from gpupod_operator.cli.plugin.kube import FIELD_MANAGER


def warn_of_other_managers(found: dict[str, Any]) -> None:
    """One line on stderr for each other manager of a field of spec."""
    for manager in spec_managers(found):
        typer.echo(
            f"warning: {manager} manages spec of GpuPod {found['metadata']['name']} too and may take this change back; "
            f"make it there as well",
            err=True,
        )


def spec_managers(found: dict[str, Any]) -> list[str]:
    """Field managers but ours that own any field of spec, in the order of the object."""
    entries = found["metadata"].get("managedFields") or ()
    owners = (entry.get("manager", "unknown") for entry in entries if "f:spec" in (entry.get("fieldsV1") or {}))
    return list(dict.fromkeys(owner for owner in owners if owner != FIELD_MANAGER))
