"""Which live pod a name means, and who else writes a spec."""

from typing import Any

import pytest

from gpupod_operator.cli.plugin.account import Listed
from gpupod_operator.cli.plugin.failure import Failed
from gpupod_operator.cli.plugin.ownership import spec_managers
from gpupod_operator.cli.plugin.pinning import the_one
from gpupod_operator.core.provider import PortMapping, ProviderPod, ProviderState

MAPPED = (PortMapping(22, 4022, "10.0.0.1"),)


def pod(
    pod_id: str, state: str = "RUNNING", mappings: tuple[PortMapping, ...] = MAPPED, name: str = "x"
) -> ProviderPod:
    return ProviderPod(pod_id, name, ProviderState(state), state, mappings=mappings)


def test_the_only_live_running_pod_with_an_endpoint_is_the_one():
    others = (pod("p2", "TERMINATED"), pod("p3", name="y"))
    assert the_one("x", Listed("acc", (pod("p1"), *others))).id == "p1"


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ((pod("p3", name="y"),), "no live pod is named x"),
        ((pod("p1"), pod("p2", "EXITED")), r"2 live pods are named x \(p1, p2\)"),
        ((pod("p1", "EXITED"),), "is EXITED, not RUNNING"),
        ((pod("p1", mappings=()),), "has no public port"),
        ((pod("p1", mappings=(PortMapping(22, None, "10.0.0.1"),)),), "has no public port"),
    ],
)
def test_anything_else_is_refused_with_the_reason(pods, words):
    with pytest.raises(Failed, match=words):
        the_one("x", Listed("acc", pods))


def test_managers_of_spec_but_ours_are_named_once():
    def owner(manager: str, *fields: str) -> dict[str, Any]:
        return {"manager": manager, "fieldsV1": {field: {} for field in fields}}

    entries = [
        owner("argocd-controller", "f:metadata", "f:spec"),
        owner("gpupod-operator", "f:status"),
        owner("kubectl-gpupod", "f:spec"),
        owner("argocd-controller", "f:spec"),
    ]
    assert spec_managers({"metadata": {"managedFields": entries}}) == ["argocd-controller"]
    assert spec_managers({"metadata": {}}) == []
