"""Manifests that set every field of the specs, and smaller ones to vary."""

from typing import Any

from crdkit.patterns import PATTERNS
from crdkit.schema import Schema

Manifest = dict[str, Any]

_KEY = {"name": "runpod-key", "key": "apiKey"}

GPUPOD_SPEC: dict[str, Any] = {
    "state": "Running",
    "paused": False,
    "account": {"secretRef": _KEY},
    "placement": {
        "candidates": [
            {"gpuType": "H100 SXM", "count": 2, "cloud": "Secure", "maxPricePerHour": "6.50"},
            {"gpuType": "RTX 4090", "cloud": "Secure", "dataCenters": ["EU-RO-1", "US-KS-2"]},
        ],
        "minCudaVersion": "12.8",
        "minRamPerGpuGb": 64,
        "minVcpuPerGpu": 8,
        "capacityWait": "12h",
    },
    "container": {
        "image": "runpod/pytorch:2.8.0",
        "entrypoint": ["/start.sh"],
        "cmd": ["sleep", "infinity"],
        "env": [
            {"name": "HF_HOME", "value": "/workspace/hf"},
            {"name": "WANDB_API_KEY", "valueFrom": {"secretKeyRef": {"name": "wandb", "key": "key"}}},
            {"name": "OTHER", "runpodSecret": "other"},
        ],
        "ports": ["22/tcp", "8888/http"],
        "diskGb": 80,
        "registry": "cred123",
    },
    "volume": {"network": {"volumeId": "vol123", "path": "/workspace"}},
    "ssh": {"keySecretRef": {"name": "my-ssh-key"}},
    "workload": {
        "command": ["bash", "/workspace/run.sh"],
        "check": ["test", "-f", "/workspace/run.sh"],
        "logFile": "/workspace/run.log",
        "stallAfter": "20m",
        "onSuccess": "Terminate",
    },
    "health": {
        "readiness": "Auth",
        "startTimeout": "30m",
        "sshWait": "8m",
        "wedgeAfter": "12m",
        "confirmations": 4,
        "resumes": 1,
    },
    "remediation": {
        "action": "Migrate",
        "approval": "Manual",
        "artifacts": "RequireVerified",
        "inFlight": "Block",
        "hostVolume": "Discard",
        "maxMigrations": 2,
        "window": "12h",
    },
    "diagnosis": {"ttl": "2h", "onExpiry": "Terminate", "owner": "ada", "until": "2030-01-02T03:04:05Z"},
    "spend": {
        "allowPaid": True,
        "maxPricePerHour": "7",
        "maxTotal": "250.00",
        "ttl": "48h",
        "onLimit": "Terminate",
        "unlaunchedAfter": "30m",
    },
    "adopt": {"podId": "abc123xyz"},
    "keepRunning": False,
    "deletionPolicy": "Stop",
    "updateStrategy": "Recreate",
    "podsConf": {
        "publish": True,
        "name": "gpu-1",
        "label": "sweep",
        "endpointOverride": {"host": "203.0.113.7", "port": 2222, "podId": "abc123xyz"},
    },
}

GPUPOD_SPEC_ON_HOST_VOLUME = GPUPOD_SPEC | {"volume": {"persistent": {"sizeGb": 100, "path": "/data"}}}

SWEEPCELL_SPEC: dict[str, Any] = {
    "podRef": {"name": "sweep"},
    "sweep": "lr-sweep",
    "source": {
        "doneFile": "/workspace/out/cell-00/DONE",
        "artifacts": [
            {"name": "evals", "path": "/workspace/out/cell-00/evals", "files": ["gsm8k.json", "mmlu.json"]},
            {"name": "tensors", "path": "/workspace/out/cell-00/t", "include": ["**/*.safetensors"], "minFiles": 1},
        ],
    },
    "destination": {
        "repo": "me/results",
        "type": "model",
        "revision": "run-1",
        "path": "lr-sweep/cell-00",
        "tokenSecretRef": {"name": "hf", "key": "token"},
    },
    "upload": {"mode": "Operator", "tokenFrom": "PodEnv", "progressDeadline": "5m", "maxCellsPerCommit": 4},
    "verify": "ReadBack",
    "resync": "3h",
}

SPECIMENS: dict[str, tuple[dict[str, Any], ...]] = {
    "GpuPod": (GPUPOD_SPEC, GPUPOD_SPEC_ON_HOST_VOLUME),
    "SweepCell": (SWEEPCELL_SPEC,),
}

LEAST: dict[str, dict[str, Any]] = {
    "GpuPod": {"placement": {"candidates": [{"gpuType": "H100 SXM"}]}, "container": {"image": "runpod/pytorch:2.8.0"}},
    "SweepCell": {key: SWEEPCELL_SPEC[key] for key in ("podRef", "sweep", "source", "destination")},
}


def manifest(kind: str, spec: dict[str, Any], name: str = "specimen", **more: Any) -> Manifest:
    return {"apiVersion": "gpupod.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec, **more}


def full(schema: Schema) -> Any:
    """A value with every field of the schema: what a status looks like that has everything at once."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: full(child) for name, child in schema["properties"].items()}
    if schema["type"] == "array":
        return [full(schema["items"])]
    if schema["type"] == "string":
        if schema.get("format") == "date-time":
            return "2030-01-02T03:04:05Z"
        return PATTERNS[schema["pattern"]].accepted[0] if "pattern" in schema else "text"
    return {"integer": max(1, schema.get("minimum", 1)), "boolean": True}[schema["type"]]
