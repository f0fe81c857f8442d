"""Addresses inside the network namespace, in which nothing of the machine's own network exists."""

from __future__ import annotations

import subprocess
from pathlib import Path

NODE_IP = "10.89.0.1"
"""Of the node: kubelet, API server, and the simulated vendors."""
RENTED = "10.89"
"""Every address of 10.89.0.0/16 is the node's: rented pods listen there, and pods of the cluster can reach them."""
POD_SUBNET = "10.88.0.0/16"
SERVICE_SUBNET = "10.96.0.0/16"
API_SERVICE_IP = "10.96.0.1"


def set_up() -> None:
    """Give this namespace its addresses. Raises CalledProcessError."""
    for order in (
        "link set lo up",
        "link add node0 type bridge",
        f"addr add {NODE_IP}/16 dev node0",
        "link set node0 up",
        "route add local 10.89.0.0/16 dev lo",
        "route add default dev node0",
    ):
        subprocess.run(["ip", *order.split()], check=True, capture_output=True)
    for name in ("net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"):
        path = Path("/proc/sys") / name
        if path.exists():
            path.write_text("1")
