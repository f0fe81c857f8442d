"""Every fault the simulator can play, as data: its name, what it does, its parameters, how often it strikes.

The names are the public interface of scenarios; add to them, do not rename.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Param = str | float | int | bool | None


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A fault. `count` and `duration` are the defaults of a rule; None is without bound. Seconds everywhere."""

    name: str
    story: str
    defaults: Mapping[str, Param] = field(default_factory=dict)
    count: int | None = None
    duration: float | None = None


_KINDS = (
    # Pods and hosts: what the machine does.
    FaultKind("wedge-at-boot", "RUNNING and billed, but the host never publishes a port", {"reachable": False}, 1),
    FaultKind(
        "wedge-later",
        "a healthy pod loses its ports after `uptime` seconds; its processes run on. `ports`: empty or kept; "
        "`mode`: blackhole or refuse; `reachable` true: only the report is wrong",
        {"uptime": 0, "ports": "empty", "reachable": False, "mode": "blackhole"},
        1,
    ),
    FaultKind("runtime-null-flicker", "one look at a RUNNING pod finds no runtime", count=1),
    FaultKind("stale-port-after-start", "after a start the old port is reported for a while", {"seconds": 90}),
    FaultKind("private-mapping", "ports are published on a private address only"),
    FaultKind("zero-gpu", "the pod starts without its GPUs", count=1),
    FaultKind("full-host-on-start", "another tenant took the GPUs of the stopped pod"),
    FaultKind("slow-pull", "the image takes `seconds` longer", {"seconds": 600}, 1),
    FaultKind("bad-image", "the image cannot be pulled; `status` is what the API says", {"status": "STARTING"}),
    FaultKind("disk-too-small", "the image does not fit: RUNNING for ever without runtime"),
    FaultKind("uptime-zero-loop", "the container never gets past its first second", count=1),
    FaultKind("crash-loop", "the container restarts every `seconds`", {"seconds": 20}, 1),
    FaultKind(
        "host-death", "the host is gone with everything on it; `status` is what the API says", {"status": "RUNNING"}
    ),
    FaultKind("outside-stop", "somebody stops the pod in the console, `uptime` seconds into its run", {"uptime": 0}, 1),
    FaultKind("outside-terminate", "somebody deletes the pod in the console", {"uptime": 0}, 1),
    FaultKind("balance-zero", "the money of the account is gone", count=1),
    FaultKind("price-change", "new pods cost `factor` times the list price", {"factor": 2}),
    FaultKind("no-capacity", "no host takes the pod", {"detail": ""}),
    FaultKind("restart-noop", "a restart answers 200 and does nothing", count=1),
    # Requests: what the API says.
    FaultKind("create-then-500", "the pod is made, the answer is 500", {"status": 500}, 1),
    FaultKind("create-then-drop", "the pod is made, the connection is reset", count=1),
    FaultKind("create-then-slow", "the pod is made, the answer takes `seconds`", {"seconds": 120}, 1),
    FaultKind("create-then-garbage", "the pod is made, the answer is no JSON", count=1),
    FaultKind("create-vanishes", "201 with an id that never exists", count=1),
    FaultKind("post-create-404", "a fresh pod is unknown to every verb on it for `seconds`", {"seconds": 30}),
    FaultKind(
        "list-lag",
        "lists lack a pod for `fresh` seconds after create, and keep it for `deleted` seconds after its end",
        {"fresh": 30, "deleted": 30},
    ),
    FaultKind("truncated-page", "a page claims more but gives no cursor", count=1),
    FaultKind("repeated-cursor", "a page gives the cursor it was asked with", count=1),
    FaultKind("empty-list", "the list is empty although pods live", count=1),
    FaultKind("duplicate-ids", "a page repeats a pod", count=1),
    FaultKind("rate-limited", "429 with `Retry-After`, for a window", {"seconds": 12, "window": "minute"}, 1),
    FaultKind("html-502", "the proxy answers with a page", {"status": 502}, 1),
    FaultKind("http-500", "an error before anything is done", {"status": 500}, 1),
    FaultKind("cloudflare-1010", "the proxy bans the client: 403 with a page", count=1),
    FaultKind("forbidden", "403 problem+json", count=1),
    FaultKind("unauthorized", "401 problem+json", count=1),
    FaultKind("api-gone-410", "the API is retired"),
    FaultKind("drop", "the connection is reset before anything is done", count=1),
    FaultKind("answer-lost", "the request is carried out, the connection is reset", count=1),
    FaultKind("slow", "the answer takes `seconds`", {"seconds": 30}, 1),
    FaultKind("delete-lingers", "a deleted pod stays visible as TERMINATED for `seconds`", {"seconds": 60}),
    FaultKind("delete-404-alive", "DELETE says 404, the pod lives on", count=1),
    FaultKind("unknown-status", "a status of tomorrow", {"status": "MIGRATING"}),
    FaultKind("missing-fields", "`fields` are missing from pods", {"fields": "runtime,ssh,cost,actions"}),
    FaultKind("unknown-fields", "pods carry a field of tomorrow", {"field": "telemetry"}),
)

CATALOG: Mapping[str, FaultKind] = {kind.name: kind for kind in _KINDS}
