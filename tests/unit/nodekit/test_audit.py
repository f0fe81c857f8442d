"""The comparison of an audit log with roles finds what it is made to find."""

from __future__ import annotations

from typing import Any

from nodekit.audit import Right, granted, refused, unused

ROLE = {
    "kind": "Role",
    "metadata": {"name": "r", "namespace": "n"},
    "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "delete"]}],
}
CLUSTER_ROLE = {
    "kind": "ClusterRole",
    "metadata": {"name": "c"},
    "rules": [{"apiGroups": ["gpupod.dev"], "resources": ["gpupods/status"], "verbs": ["patch"]}],
}


def event(verb: str, resource: str, by: str, **reference: str) -> dict[str, Any]:
    decision = "allow" if by else "forbid"
    reason = f'RBAC: allowed by {by} to ServiceAccount "x/y"' if by else ""
    notes = {"authorization.k8s.io/decision": decision, "authorization.k8s.io/reason": reason}
    return {"verb": verb, "objectRef": {"resource": resource, **reference}, "annotations": notes}


GET = event("get", "secrets", 'RoleBinding "r/n" of Role "r"', namespace="n")
STATUS = event(
    "patch",
    "gpupods",
    'ClusterRoleBinding "c" of ClusterRole "c"',
    namespace="n",
    apiGroup="gpupod.dev",
    subresource="status",
)


def test_every_right_is_told_apart() -> None:
    assert sorted(granted([ROLE, CLUSTER_ROLE, {"kind": "Service", "metadata": {"name": "s"}}])) == [
        Right("c", "", "patch", "gpupod.dev", "gpupods/status"),
        Right("r", "n", "delete", "", "secrets"),
        Right("r", "n", "get", "", "secrets"),
    ]


def test_a_right_is_used_only_by_requests_that_its_own_role_let_through() -> None:
    rights = list(granted([ROLE, CLUSTER_ROLE]))
    assert unused(rights, [GET, STATUS]) == [Right("r", "n", "delete", "", "secrets")]
    by_another = event("get", "secrets", 'ClusterRoleBinding "c" of ClusterRole "c"', namespace="n")
    assert Right("r", "n", "get", "", "secrets") in unused(rights, [by_another])


def test_a_refusal_is_no_use_and_is_named() -> None:
    no = event("delete", "secrets", "", namespace="n")
    assert Right("r", "n", "delete", "", "secrets") in unused(granted([ROLE]), [no])
    assert refused([GET, no]) == ["delete secrets in n"]
