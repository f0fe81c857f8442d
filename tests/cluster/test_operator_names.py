"""Names in pods.conf: one per namespace, held by the older object, free again when it goes; namespaces do not share."""

from __future__ import annotations

from typing import Any

from gpupod_rehearsal.demo.stage import API, NAMESPACE
from worldkit.fixtures import Theatre, condition, is_true, pod_id

OTHER = "other-team"
SHARED = {"name": "shared"}


async def row_of(theatre: Theatre, pod: dict[str, Any], namespace: str) -> list[str]:
    """The one row called "shared" of a namespace, once it has this pod's port."""
    port = str(pod["status"]["endpoint"]["port"])
    conf = await theatre.admin.watch_until(
        "ConfigMap",
        "pods-conf",
        lambda c: [line[2] for line in named(c)] == [port],
        namespace=namespace,
        timeout=20,
    )
    return named(conf)[0]


def named(conf: dict[str, Any] | None) -> list[list[str]]:
    """The fields of all rows called "shared"."""
    text = ((conf or {}).get("data") or {}).get("pods.conf", "")
    return [line.split() for line in text.splitlines() if line.startswith("shared ")]


async def test_the_younger_takes_the_name_by_itself_when_the_older_goes(theatre: Theatre) -> None:
    await theatre.apply("one", podsConf=SHARED)
    older = await theatre.until(is_true("Registered"), "one")
    await theatre.apply("two", podsConf=SHARED)
    younger = await theatre.until(lambda p: condition(p, "Registered").get("reason") == "NameConflict", "two")
    said = condition(younger, "Registered")
    assert said["status"] == "False"
    assert "one" in said["message"]
    assert "podsConf.name" in said["message"], "what to do"
    assert is_true("Ready")(await theatre.until(is_true("Ready"), "two")), "a name costs no pod"
    await row_of(theatre, older, NAMESPACE)
    await theatre.lists(6)
    assert await theatre.creates() == 2
    await theatre.stage.kube.delete(API, "GpuPod", "one", NAMESPACE)
    heir = await theatre.until(is_true("Registered"), "two", within=20)
    await row_of(theatre, heir, NAMESPACE)
    assert await theatre.creates() == 2


async def test_one_name_in_two_namespaces_is_published_in_both(theatre: Theatre) -> None:
    await theatre.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHER}})
    await theatre.apply("one", podsConf=SHARED)
    here = await theatre.until(is_true("Registered"), "one")
    body = await theatre.stage.kube.get(API, "GpuPod", "one", NAMESPACE)
    assert body is not None
    twin = {"apiVersion": API, "kind": "GpuPod", "metadata": {"name": "one"}, "spec": body["spec"]}
    await theatre.stage.kube.apply(twin, OTHER)
    there = await theatre.admin.watch_until("GpuPod", "one", is_true("Registered"), namespace=OTHER, timeout=60)
    assert there is not None
    assert pod_id(here) != pod_id(there)
    assert await row_of(theatre, here, NAMESPACE) != await row_of(theatre, there, OTHER)
    await theatre.stage.kube.delete(API, "GpuPod", "one", OTHER)
    await theatre.admin.wait_gone("GpuPod", "one", namespace=OTHER, timeout=60)
    assert [p["podId"] for p in await theatre.alive()] == [pod_id(here)]
    await row_of(theatre, here, NAMESPACE)
