"""The simulated RunPod: REST v2 with its faults, hosts, capacity and money, for tests and for the rehearsal.

`RunPodSimulator` serves it on a loopback port; `Cloud` is the pure model behind it.
"""

from gpupod_rehearsal.runpod.clock import Clock, SystemClock, VirtualClock
from gpupod_rehearsal.runpod.cloud import Blueprint, Cloud
from gpupod_rehearsal.runpod.contract import Profile
from gpupod_rehearsal.runpod.faults import FaultBook, Rule, Target, UnknownFaultError
from gpupod_rehearsal.runpod.pod import SimPod, Status
from gpupod_rehearsal.runpod.simulator import RunPodSimulator
from gpupod_rehearsal.runpod.world import Account, ApiKey, Host, NetworkVolume, Timings

__all__ = [
    "Account",
    "ApiKey",
    "Blueprint",
    "Clock",
    "Cloud",
    "FaultBook",
    "Host",
    "NetworkVolume",
    "Profile",
    "Rule",
    "RunPodSimulator",
    "SimPod",
    "Status",
    "SystemClock",
    "Target",
    "Timings",
    "UnknownFaultError",
    "VirtualClock",
]
