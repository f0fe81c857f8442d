"""For every CEL rule: a manifest that it accepts and one that it refuses, named by the message that people read."""

from typing import Any, NamedTuple

from crdkit.specimens import LEAST

Spec = dict[str, Any]


class RuleCase(NamedTuple):
    """`message` is the beginning of the rule's message; both specs are whole."""

    kind: str
    message: str
    accepted: tuple[Spec, ...]
    refused: tuple[Spec, ...]


class ChangeCase(NamedTuple):
    """A rule about changes: from `before` (with this status) to `accepted` or `refused`."""

    kind: str
    message: str
    before: Spec
    status: dict[str, Any]
    accepted: tuple[Spec, ...]
    refused: tuple[Spec, ...]


def _pod(**changes: Any) -> Spec:
    return LEAST["GpuPod"] | changes


def _env(*variables: dict[str, Any]) -> Spec:
    return _pod(container={"image": "runpod/pytorch:2.8.0", "env": list(variables)})


def _candidate(**fields: Any) -> Spec:
    return _pod(placement={"candidates": [{"gpuType": "RTX 4090", **fields}]})


def _artifact(**fields: Any) -> Spec:
    source = {"doneFile": "/workspace/DONE", "artifacts": [{"name": "evals", "path": "/workspace/evals", **fields}]}
    return LEAST["SweepCell"] | {"source": source}


_SECRET = {"secretKeyRef": {"name": "wandb", "key": "key"}}
_IMAGE = {"container": {"image": "runpod/pytorch:2.8.0"}}
_PLACEMENT = {"placement": {"candidates": [{"gpuType": "H100 SXM"}]}}
_NETWORK = {"network": {"volumeId": "vol1"}}
_PERSISTENT = {"persistent": {"sizeGb": 10}}

RULES: tuple[RuleCase, ...] = (
    RuleCase(
        "GpuPod",
        "placement.candidates is required",
        accepted=(_pod(), {"paused": True}, {"adopt": {"podId": "abc"}}, {"adopt": {"podId": "abc"}, **_IMAGE}),
        refused=({}, {"paused": False, **_IMAGE}, {"placement": {"capacityWait": "1h"}, **_IMAGE}),
    ),
    RuleCase(
        "GpuPod",
        "container.image is required",
        accepted=(_pod(), {"paused": True, "podsConf": {"label": "x"}}, {"adopt": {"podId": "abc"}}),
        refused=(_PLACEMENT, {"container": {"diskGb": 20}, **_PLACEMENT}),
    ),
    RuleCase(
        "GpuPod",
        "dataCenters cannot be combined with cloud Community",
        accepted=(
            _candidate(cloud="Community"),
            _candidate(cloud="Community", dataCenters=[]),
            _candidate(cloud="Secure", dataCenters=["EU-RO-1"]),
            _candidate(dataCenters=["EU-RO-1"]),
        ),
        refused=(_candidate(cloud="Community", dataCenters=["EU-RO-1"]),),
    ),
    RuleCase(
        "GpuPod",
        "write exactly one of value, valueFrom and runpodSecret",
        accepted=(
            _env({"name": "A", "value": ""}, {"name": "B", "valueFrom": _SECRET}, {"name": "C", "runpodSecret": "c"}),
        ),
        refused=(
            _env({"name": "A"}),
            _env({"name": "A", "value": "1", "valueFrom": _SECRET}),
            _env({"name": "A", "value": "1", "runpodSecret": "c"}),
            _env({"name": "A", "value": "1", "valueFrom": _SECRET, "runpodSecret": "c"}),
        ),
    ),
    RuleCase(
        "GpuPod",
        "GPUPOD_* and PUBLIC_KEY are set by the operator",
        accepted=(_env({"name": "MY_GPUPOD_X", "value": "1"}, {"name": "PUBLIC_KEYS", "value": "1"}),),
        refused=(
            _env({"name": "GPUPOD_OWNER", "value": "me"}),
            _env({"name": "GPUPOD_NONCE", "value": "me"}),
            _env({"name": "PUBLIC_KEY", "value": "ssh-ed25519 AAAA"}),
        ),
    ),
    RuleCase(
        "GpuPod",
        "write exactly one of volume.network and volume.persistent",
        accepted=(_pod(volume=_NETWORK), _pod(volume=_PERSISTENT)),
        refused=(_pod(volume={}), _pod(volume=_NETWORK | _PERSISTENT)),
    ),
    RuleCase(
        "GpuPod",
        "health.wedgeAfter must be at least 1.25 times health.sshWait",
        accepted=(
            _pod(health={}),
            _pod(health={"sshWait": "8s", "wedgeAfter": "10s"}),
            _pod(health={"sshWait": "12m"}),
            _pod(health={"sshWait": "1h", "wedgeAfter": "1h15m"}),
        ),
        refused=(
            _pod(health={"sshWait": "8s", "wedgeAfter": "9s"}),
            _pod(health={"sshWait": "13m"}),
            _pod(health={"wedgeAfter": "12m"}),
        ),
    ),
    RuleCase(
        "GpuPod",
        "diagnosis.until needs diagnosis.owner",
        accepted=(_pod(diagnosis={"owner": "ada"}), _pod(diagnosis={"owner": "ada", "until": "2030-01-01T00:00:00Z"})),
        refused=(_pod(diagnosis={"until": "2030-01-01T00:00:00Z"}),),
    ),
    RuleCase(
        "GpuPod",
        "diagnosis.ttl must be at least 5m",
        accepted=(_pod(diagnosis={"ttl": "5m"}), _pod(diagnosis={"ttl": "300s"})),
        refused=(_pod(diagnosis={"ttl": "4m59s"}), _pod(diagnosis={"ttl": "0s"})),
    ),
    RuleCase(
        "GpuPod",
        "write at least one of podsConf.endpointOverride.host and .port",
        accepted=(
            _pod(podsConf={"endpointOverride": {"host": "203.0.113.7"}}),
            _pod(podsConf={"endpointOverride": {"port": 22}}),
        ),
        refused=(
            _pod(podsConf={"endpointOverride": {}}),
            _pod(podsConf={"endpointOverride": {"podId": "abc"}}),
        ),
    ),
    RuleCase(
        "SweepCell",
        "write either files (an exact set) or include (globs) with minFiles",
        accepted=(_artifact(files=["a.json"]), _artifact(include=["*.json"], minFiles=2)),
        refused=(_artifact(), _artifact(files=["a.json"], include=["*.json"], minFiles=1)),
    ),
    RuleCase(
        "SweepCell",
        "include and minFiles belong together",
        accepted=(_artifact(files=["a.json"]), _artifact(include=["*.json"], minFiles=2)),
        refused=(_artifact(include=["*.json"]), _artifact(files=["a.json"], minFiles=1)),
    ),
)

_LIVE = {"attempt": {"podId": "abc123"}}
_CELL = LEAST["SweepCell"]

CHANGES: tuple[ChangeCase, ...] = (
    ChangeCase(
        "GpuPod",
        "spec.adopt cannot change while status.attempt.podId names a pod",
        before=_pod(adopt={"podId": "abc123"}),
        status=_LIVE,
        accepted=(_pod(adopt={"podId": "abc123"}, paused=True),),
        refused=(_pod(), _pod(adopt={"podId": "other"})),
    ),
    ChangeCase(
        "GpuPod",
        "spec.adopt cannot change while status.attempt.podId names a pod",
        before=_pod(),
        status=_LIVE,
        accepted=(_pod(state="Stopped"),),
        refused=(_pod(adopt={"podId": "other"}),),
    ),
    ChangeCase(
        "GpuPod",
        "spec.adopt cannot change while status.attempt.podId names a pod",
        before=_pod(adopt={"podId": "typo"}),
        status={"attempt": {"id": "a1", "retiredNonces": ["n1"]}},
        accepted=(_pod(), _pod(adopt={"podId": "abc123"})),
        refused=(),
    ),
    ChangeCase(
        "GpuPod",
        "spec.volume cannot change while status.attempt.podId names a pod",
        before=_pod(volume=_NETWORK),
        status=_LIVE,
        accepted=(_pod(volume=_NETWORK, keepRunning=True),),
        refused=(
            _pod(),
            _pod(volume=_PERSISTENT),
            _pod(volume={"network": {"volumeId": "vol2"}}),
            _pod(volume={"network": {"volumeId": "vol1", "path": "/data"}}),
        ),
    ),
    ChangeCase(
        "GpuPod",
        "spec.volume cannot change while status.attempt.podId names a pod",
        before=_pod(),
        status=_LIVE,
        accepted=(),
        refused=(_pod(volume=_NETWORK),),
    ),
    ChangeCase(
        "GpuPod",
        "spec.volume cannot change while status.attempt.podId names a pod",
        before=_pod(volume=_NETWORK),
        status={"phase": "WaitingForCapacity"},
        accepted=(_pod(), _pod(volume=_PERSISTENT)),
        refused=(),
    ),
    ChangeCase(
        "SweepCell",
        "podRef cannot change",
        before=_CELL,
        status={},
        accepted=(_CELL | {"sweep": "other"},),
        refused=(_CELL | {"podRef": {"name": "other"}},),
    ),
    ChangeCase(
        "SweepCell",
        "source cannot change",
        before=_CELL,
        status={},
        accepted=(_CELL | {"resync": "1h"},),
        refused=(_artifact(files=["a.json"]), _CELL | {"source": _CELL["source"] | {"doneFile": "/workspace/OTHER"}}),
    ),
    ChangeCase(
        "SweepCell",
        "destination cannot change",
        before=_CELL,
        status={},
        accepted=(_CELL | {"upload": {"progressDeadline": "1m"}},),
        refused=(
            _CELL | {"destination": _CELL["destination"] | {"path": "elsewhere"}},
            _CELL | {"destination": _CELL["destination"] | {"repo": "me/other"}},
            _CELL | {"destination": _CELL["destination"] | {"tokenSecretRef": {"name": "t", "key": "k"}}},
        ),
    ),
)
