"""The calls that are made to RunPod: their names in metrics, and what a lost answer means for each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CallKind(StrEnum):
    """What is at stake in a call.

    READ changes nothing, so no answer is merely unknown. CREATE rents: without an answer a pod may bill. MUTATE changes
    one pod. RELEASE (stop, delete) changes one pod and ends spending: it may use the reserved share of the quota.
    """

    READ = "read"
    CREATE = "create"
    MUTATE = "mutate"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Call:
    """One operation of the API. `expects` is the only status that means success."""

    name: str
    kind: CallKind
    method: str
    expects: int = 200


LIST_PODS = Call("list_pods", CallKind.READ, "GET")
GET_POD = Call("get_pod", CallKind.READ, "GET")
CREATE_POD = Call("create_pod", CallKind.CREATE, "POST", 201)
PATCH_POD = Call("patch_pod", CallKind.MUTATE, "PATCH")
DELETE_POD = Call("delete_pod", CallKind.RELEASE, "DELETE", 204)
STOP_POD = Call("stop_pod", CallKind.RELEASE, "POST")
START_POD = Call("start_pod", CallKind.MUTATE, "POST")
SYSTEM_LOG = Call("system_log", CallKind.READ, "GET")
GPU_OFFERS = Call("gpu_offers", CallKind.READ, "GET")
NETWORK_VOLUMES = Call("network_volumes", CallKind.READ, "GET")
NETWORK_VOLUME = Call("network_volume", CallKind.READ, "GET")
ACCOUNT = Call("account", CallKind.READ, "GET")
ACCOUNT_LIMITS = Call("account_limits", CallKind.READ, "GET")
BALANCE = Call("balance", CallKind.READ, "GET")
SSH_KEYS = Call("ssh_keys", CallKind.READ, "GET")
