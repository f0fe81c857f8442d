"""The simulated Hugging Face Hub: real HTTP, real git and LFS identities, for the unmodified client."""

from gpupod_rehearsal.hub.accounts import HubToken
from gpupod_rehearsal.hub.clock import HubClock, SteppedClock, WallClock
from gpupod_rehearsal.hub.faults import FAULTS, Fault
from gpupod_rehearsal.hub.limits import HubLimits
from gpupod_rehearsal.hub.simulator import HubSimulator
from gpupod_rehearsal.hub.view import RepositoryView

__all__ = [
    "FAULTS",
    "Fault",
    "HubClock",
    "HubLimits",
    "HubSimulator",
    "HubToken",
    "RepositoryView",
    "SteppedClock",
    "WallClock",
]
