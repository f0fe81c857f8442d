"""`gpupod-operator`: run, crds, check, rehearse. A mistake is one line on stderr and exit code 2."""

from __future__ import annotations


def main() -> None:
    """Entry point. Imports late: the kubectl plugin shares this package and must not wait for the operator."""
    from gpupod_operator.cli.main import main as command  # noqa: PLC0415

    command()
