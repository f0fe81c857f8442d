"""`python -m gpupod_operator.cli.plugin`, for machines where the entry point is not on PATH."""

from __future__ import annotations

from gpupod_operator.cli.plugin.app import main

main()
