"""What can be done to an existing pod: start, stop, restart, terminate and PATCH, with the vendor's refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpupod_rehearsal.runpod import lifecycle
from gpupod_rehearsal.runpod.create import check_ports, with_template
from gpupod_rehearsal.runpod.pod import ACTIONS, SimPod, Status
from gpupod_rehearsal.runpod.problems import FULL_HOST, HOST_DOWN, LOW_BALANCE, Problem, bad_request, conflict
from gpupod_rehearsal.runpod.world import Account

if TYPE_CHECKING:
    from gpupod_rehearsal.runpod.cloud import Cloud

_CONTAINER_FIELDS = ("image", "args", "entrypoint", "cmd", "disk", "ports", "env", "registry")


def act(cloud: Cloud, account: Account, pod: SimPod, action: str) -> None:
    """Apply an action. Raises Problem 400, 402 or 409."""
    refuse_cluster_member(pod)
    if action not in ACTIONS[pod.status]:
        raise conflict(f"cannot {action} a pod in status {pod.status}")
    if action in {"stop", "restart"} and pod.locked:
        raise bad_request("pod is locked")
    if action == "start":
        _check_start(cloud, account, pod)
        lifecycle.start(cloud, pod)
    elif action == "stop":
        lifecycle.stop(cloud, pod)
    elif action == "restart":
        if cloud.faults.fire("restart-noop", cloud.subject(pod)) is None:
            lifecycle.restart(cloud, pod)
    else:
        lifecycle.terminate(cloud, pod)


def update(cloud: Cloud, account: Account, pod: SimPod, body: Mapping[str, Any]) -> None:
    """Apply a PATCH that fits the contract; a new container part resets a running pod. Raises Problem 400, 409."""
    refuse_cluster_member(pod)
    body = with_template(account, body)
    check_ports(body.get("ports", []))
    _update_mounts(pod, body.get("mounts") or {})
    before = [getattr(pod.container, name) for name in _CONTAINER_FIELDS]
    changes = {name: body[name] for name in _CONTAINER_FIELDS if name in body}
    if pod.locked and any(getattr(pod.container, name) != value for name, value in changes.items()):
        raise bad_request("pod is locked")
    for name, value in changes.items():
        setattr(pod.container, name, value)
    pod.name = body.get("name", pod.name)
    pod.locked = body.get("locked", pod.locked)
    pod.global_networking = body.get("globalNetworking", pod.global_networking)
    changed = before != [getattr(pod.container, name) for name in _CONTAINER_FIELDS]
    if changed and pod.status in {Status.RUNNING, Status.STARTING}:
        lifecycle.restart(cloud, pod)


def refuse_cluster_member(pod: SimPod) -> None:
    """Cluster members take no pod verbs: 409."""
    if pod.cluster is not None:
        raise conflict("pod is a member of a cluster and cannot be modified through the pod endpoints")


def _check_start(cloud: Cloud, account: Account, pod: SimPod) -> None:
    host = cloud.hosts[pod.host]
    if not host.alive:
        raise bad_request(HOST_DOWN)
    if cloud.faults.fire("full-host-on-start", cloud.subject(pod)) is not None:
        raise bad_request(FULL_HOST)
    if not pod.holds_gpus and cloud.free_gpus(host) < pod.gpu_count:
        raise bad_request(FULL_HOST)
    if account.billing_mode == "PREPAID" and cloud.balance(account) < pod.price:
        raise Problem(402, LOW_BALANCE)


def _update_mounts(pod: SimPod, mounts: Mapping[str, Any]) -> None:
    if "network" in mounts:
        if not mounts["network"]:
            raise bad_request("clearing mounts is not supported")
        if pod.network is None or mounts["network"][0]["volumeId"] != pod.network["volumeId"]:
            raise bad_request("the network mount is fixed at create")
        pod.network = dict(mounts["network"][0])
    if "persistent" in mounts:
        if pod.persistent is None:
            raise bad_request("the mount kind is fixed at create")
        if mounts["persistent"]["size"] < lifecycle.volume_size(pod):
            raise bad_request("a volume can only grow")
        pod.persistent = dict(mounts["persistent"])
