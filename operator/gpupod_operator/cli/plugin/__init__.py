"""`kubectl gpupod`: what a person asks and tells, from outside the cluster. Annotations name exact pod ids."""

from __future__ import annotations

from gpupod_operator.cli.plugin.app import main

__all__ = ["main"]
