"""The demo: `gpupod-operator rehearse`, `make demo`."""

from gpupod_rehearsal.demo.main import run_demo

__all__ = ["run_demo"]
