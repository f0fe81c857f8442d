"""`gpupod-operator`: run, crds, check, rehearse. A mistake is one line on stderr and exit code 2."""

from __future__ import annotations

from gpupod_operator.cli.main import main

__all__ = ["main"]
