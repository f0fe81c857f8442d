"""One row of pods.conf from one committed GpuPod: where it is, what it is, and where each value comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpupod_operator.api.gpupod_spec import EndpointOverride, GpuPodSpec
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.times import parse_time

SHORT_GPU_NAMES: Mapping[str, str] = {
    "NVIDIA A100-SXM4-80GB": "A100",
    "NVIDIA H100 80GB HBM3": "H100",
    "NVIDIA H200": "H200",
}
"""The short labels of the scripts that pods.conf comes from. Readers match on them, so new types keep their raw id."""

NOT_RUNNING = frozenset({"EXITED", "TERMINATED"})
"""The vendor's words for a pod that certainly does not run. Every other word, a new one too, keeps the row."""


_PLAIN = re.compile(r"[!-~]+")
_HOST_KEY = re.compile(r"[!-~]+ [!-~]+( .*)?")


@dataclass(frozen=True, slots=True)
class PodObject:
    """A committed GpuPod as the renderer needs it."""

    namespace: str
    name: str
    uid: str
    created_at: datetime
    spec: GpuPodSpec
    status: GpuPodStatus

    @property
    def row_name(self) -> str:
        return self.spec.pods_conf.name or self.name


@dataclass(frozen=True, slots=True)
class Row:
    """A row of pods.conf and what ssh needs beside it. None of the six fields holds whitespace.

    `host_key` is the pinned key line (`ssh-ed25519 AAAA...`) of this pod id and start, None while none is known.
    """

    name: str
    host: str
    port: int
    gpus: int
    gpu_type: str
    label: str
    host_key: str | None = None
    pod_id: str | None = None
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The condition `Registered` of one object."""

    registered: bool
    reason: Reason
    message: str


def pod_object(raw: Mapping[str, Any]) -> PodObject:
    """From the object's JSON. Raises ValueError (pydantic's is one) for what no API server with our CRD returns."""
    metadata = raw["metadata"]
    return PodObject(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        created_at=parse_time(metadata["creationTimestamp"]),
        spec=GpuPodSpec.model_validate(raw.get("spec") or {}),
        status=GpuPodStatus.model_validate(raw.get("status") or {}),
    )


def row_of(pod: PodObject) -> tuple[Row | None, Verdict]:
    """The object's row, or None with the reason why it has none. Names held by others are not looked at here."""
    if not pod.spec.pods_conf.publish:
        return None, Verdict(False, Reason.PUBLISH_DISABLED, "spec.podsConf.publish is false")
    live, absence = _live_endpoint(pod)
    override = effective_override(pod.spec, pod.status)
    if override is None:
        if live is None:
            return None, absence
        return _row(pod, *live, f"host and port from pod {_pod_id(pod)}", Reason.REGISTERED)
    host = override.host or (live[0] if live is not None else None)
    port = override.port or (live[1] if live is not None else None)
    if host is None or port is None:
        given, missing = ("host", "port") if port is None else ("port", "host")
        message = (
            f"spec.podsConf.endpointOverride gives only the {given}, and the {missing} cannot be taken from the pod "
            f"({absence.message}); add endpointOverride.{missing} or wait for the pod"
        )
        return None, Verdict(False, Reason.OVERRIDE_INCOMPLETE, message)
    return _overridden(pod, override, live, host, port)


def effective_override(spec: GpuPodSpec, status: GpuPodStatus) -> EndpointOverride | None:
    """The override while it is in force: with a `podId` only as long as that pod is the recorded one."""
    override = spec.pods_conf.endpoint_override
    if override is None or (override.host is None and override.port is None):
        return None
    recorded = status.attempt.pod_id if status.attempt is not None else None
    if override.pod_id is not None and override.pod_id != recorded:
        return None
    return override


def short_gpu_type(gpu_type_id: str | None) -> str:
    """The short label, else the raw id with each run of whitespace as `-`, else `unknown`."""
    if gpu_type_id is None or not gpu_type_id.strip():
        return "unknown"
    return SHORT_GPU_NAMES.get(gpu_type_id) or re.sub(r"\s+", "-", gpu_type_id.strip())


def _overridden(
    pod: PodObject, override: EndpointOverride, live: tuple[str, int] | None, host: str, port: int
) -> tuple[Row | None, Verdict]:
    pinned = " and ".join(k for k, v in (("host", override.host), ("port", override.port)) if v is not None)
    rest = "port" if override.port is None else "host"
    source = f"{pinned} from spec.podsConf.endpointOverride"
    if override.host is None or override.port is None:
        source += f", {rest} from pod {_pod_id(pod)}"
    if live is None or live == (host, port):
        return _row(pod, host, port, source, Reason.REGISTERED)
    source += f"; the pod itself is at {live[0]}:{live[1]}, remove the override to follow it"
    return _row(pod, host, port, source, Reason.OVERRIDE_DIFFERS)


def _row(pod: PodObject, host: str, port: int, source: str, reason: Reason) -> tuple[Row | None, Verdict]:
    endpoint, shown, conf = pod.status.endpoint, pod.status.pod, pod.spec.pods_conf
    host_key = endpoint.host_key if endpoint is not None else None
    row = Row(
        name=pod.row_name,
        host=host,
        port=port,
        gpus=(shown.count if shown is not None else None) or 1,
        gpu_type=short_gpu_type(shown.gpu_type if shown is not None else None),
        label=conf.label or pod.row_name,
        host_key=host_key if host_key is not None and _HOST_KEY.fullmatch(host_key) else None,
        pod_id=_pod_id(pod),
        started_at=endpoint.started_at if endpoint is not None else None,
    )
    # The schema and the vendor promise plain words. A line break in one of them would be an ssh option on the machine
    # of whoever uses the file, so it is not left to promises.
    for word in (row.name, row.host, row.gpu_type, row.label, row.pod_id or "-"):
        if not _PLAIN.fullmatch(word):
            message = f"{word!r} cannot stand in pods.conf: a field is one word of printable ASCII"
            return None, Verdict(False, Reason.REGISTRATION_FAILED, message)
    gpus = "gpus and type from the provider" if shown is not None and shown.count else "gpus and type are placeholders"
    label = "label from spec" if conf.label else "label from the name"
    fields = f"{row.name} {row.host} {row.port} {row.gpus} {row.gpu_type} {row.label}"
    return row, Verdict(True, reason, f"{fields} ({gpus}, {label}, {source})")


def _live_endpoint(pod: PodObject) -> tuple[tuple[str, int] | None, Verdict]:
    """The recorded endpoint while its pod may run, and beside it the words for when there is none."""
    endpoint, shown = pod.status.endpoint, pod.status.pod
    if _pod_id(pod) is None:
        return None, Verdict(False, Reason.NO_POD, "no pod is recorded")
    if shown is not None and shown.provider_status in NOT_RUNNING:
        message = f"pod {_pod_id(pod)} is {shown.provider_status}, not running"
        return None, Verdict(False, Reason.POD_NOT_RUNNING, message)
    if endpoint is not None and endpoint.lost:
        message = f"pod {_pod_id(pod)} shows no public port, and its last endpoint {endpoint.address} does not answer"
        return None, Verdict(False, Reason.NO_ENDPOINT, message)
    if endpoint is None or endpoint.host is None or endpoint.port is None:
        return None, Verdict(False, Reason.NO_ENDPOINT, f"pod {_pod_id(pod)} has no public port for 22/tcp yet")
    return (endpoint.host, endpoint.port), Verdict(True, Reason.REGISTERED, "")


def _pod_id(pod: PodObject) -> str | None:
    return pod.status.attempt.pod_id if pod.status.attempt is not None else None
