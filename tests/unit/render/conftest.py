"""GpuPods as the API server holds them, in few words."""

from collections.abc import Callable
from typing import Any

import pytest

from gpupod_operator.render.rows import PodObject, pod_object

Make = Callable[..., PodObject]

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHXqVZsLkQmJr2uvY1c0pZ4m6Jx0v8tqk3n5a7w9y1zB"


@pytest.fixture
def make() -> Make:
    """A GpuPod with a running, mapped pod; None for `endpoint` or `pod` takes that part of the status away."""

    def build(
        name: str,
        *,
        conf: dict[str, Any] | None = None,
        endpoint: dict[str, Any] | None = None,
        pod: dict[str, Any] | None = None,
        pod_id: str | None = "p1",
        created: str = "2026-11-30T12:00:00Z",
        uid: str | None = None,
    ) -> PodObject:
        status: dict[str, Any] = {}
        if pod_id is not None:
            status["attempt"] = {"id": "a1", "podId": pod_id}
        if endpoint is not None:
            status["endpoint"] = {"podId": pod_id, "startedAt": "2026-11-30T12:01:00Z", **endpoint}
        if pod is not None:
            status["pod"] = {"id": pod_id, **pod}
        return pod_object(
            {
                "metadata": {
                    "name": name,
                    "namespace": "lab",
                    "uid": uid or f"uid-{name}",
                    "creationTimestamp": created,
                },
                "spec": {"podsConf": conf or {}},
                "status": status,
            }
        )

    return build
