"""`python -m gpupod_operator` is `gpupod-operator`."""

from gpupod_operator.cli import main

main()
