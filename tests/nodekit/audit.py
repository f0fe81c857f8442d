"""The API server's audit log against the shipped roles: nothing is granted and unused, nothing is used and refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

WHO = "system:serviceaccount:gpupod-system:gpupod-operator"
ASKED_WITHIN = frozenset({("create", "", "configmaps"), ("create", "", "secrets")})
"""Asked by the API server while it serves an apply that makes the object; the audit log has the request's verb only.

That each is needed is a test of its own (tests/cluster/test_rights.py).
"""


@dataclass(frozen=True, order=True)
class Right:
    """A verb on a resource, by one role. `namespace` "" for a ClusterRole."""

    role: str
    namespace: str
    verb: str
    group: str
    resource: str


def flags(folder: Path) -> list[str]:
    """Arguments of the API server that have each request of the operator written to `audit.log` there."""
    policy = folder / "audit-policy.yaml"
    rules = [{"level": "Metadata", "users": [WHO], "omitStages": ["RequestReceived"]}, {"level": "None"}]
    policy.write_text(yaml.safe_dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
    return [
        f"--audit-policy-file={policy}",
        f"--audit-log-path={folder / 'audit.log'}",
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
    ]


def read(folder: Path) -> list[dict[str, Any]]:
    """The events so far."""
    return [json.loads(line) for line in (folder / "audit.log").read_text().splitlines()]


def granted(manifests: Iterable[dict[str, Any]]) -> Iterator[Right]:
    """Every right that the roles among these manifests give, one by one."""
    for manifest in manifests:
        if manifest["kind"] not in ("Role", "ClusterRole"):
            continue
        name, namespace = manifest["metadata"]["name"], manifest["metadata"].get("namespace", "")
        for rule in manifest["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield Right(name, namespace, verb, group, resource)


def unused(rights: Iterable[Right], events: Iterable[dict[str, Any]]) -> list[Right]:
    """Rights by whose grace no request went through."""
    used = {_used(event) for event in events if _decision(event) == "allow"}
    return sorted(r for r in rights if r not in used and (r.verb, r.group, r.resource) not in ASKED_WITHIN)


def refused(events: Iterable[dict[str, Any]]) -> list[str]:
    """Requests that were refused for want of a right."""
    found = {
        f"{event['verb']} {_resource(event)} in {event.get('objectRef', {}).get('namespace', '(cluster)')}"
        for event in events
        if _decision(event) == "forbid"
    }
    return sorted(found)


def _used(event: dict[str, Any]) -> Right:
    """By the authorizer's own word: `RBAC: allowed by RoleBinding "name/ns" of Role "name" to ...`."""
    reason = event.get("annotations", {}).get("authorization.k8s.io/reason", "")
    _, _, by = reason.partition(" of ")
    kind, _, rest = by.partition(' "')
    name = rest.partition('"')[0]
    reference = event.get("objectRef", {})
    namespace = reference.get("namespace", "") if kind == "Role" else ""
    return Right(name, namespace, event["verb"], reference.get("apiGroup", ""), _resource(event))


def _resource(event: dict[str, Any]) -> str:
    reference = event.get("objectRef") or {}
    parts = (reference.get("resource", event.get("requestURI", "")), reference.get("subresource", ""))
    return "/".join(part for part in parts if part)


def _decision(event: dict[str, Any]) -> str:
    return str(event.get("annotations", {}).get("authorization.k8s.io/decision", ""))
