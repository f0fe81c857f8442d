"""Rights that no audit log shows: an apply that makes an object needs `create` besides `patch`."""

from __future__ import annotations

import asyncio
import ssl

import aiohttp
import pytest

from clusterkit import Admin
from gpupod_rehearsal.controlplane import ControlPlane

NAME = "applier"


@pytest.mark.parametrize(
    ("verbs", "status"), [(["patch"], 403), (["create", "patch"], 201)], ids=["without create", "with create"]
)
@pytest.mark.parametrize("resource", ["configmaps", "secrets"])
async def test_an_apply_that_makes_an_object_needs_create(
    control_plane: ControlPlane, admin: Admin, namespace: str, resource: str, verbs: list[str], status: int
) -> None:
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": [resource], "verbs": verbs}]
    who = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    reference = {"apiGroup": group, "kind": "Role", "name": NAME}
    for manifest in (
        {"apiVersion": "v1", "kind": "ServiceAccount"},
        {"apiVersion": f"{group}/v1", "kind": "Role", "rules": rules},
        {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "roleRef": reference, "subjects": [who]},
    ):
        await admin.apply({**manifest, "metadata": {"name": NAME}}, namespace=namespace)
    token = await asyncio.to_thread(control_plane.access.token_request, namespace, NAME)
    kind = {"configmaps": "ConfigMap", "secrets": "Secret"}[resource]
    url = f"{control_plane.access.url}/api/v1/namespaces/{namespace}/{resource}/made?fieldManager=test"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/apply-patch+yaml"}
    body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "made"}}
    trust = ssl.create_default_context(cafile=str(control_plane.access.ca))
    async with aiohttp.ClientSession() as session:
        async with asyncio.timeout(20):
            while True:
                async with session.patch(url, json=body, headers=headers, ssl=trust) as answer:
                    # a new binding takes a moment to reach the authorizer, which until then refuses `patch` itself
                    if answer.status != 403 or "cannot create" in (await answer.json())["message"]:
                        break
                await asyncio.sleep(0.1)
    assert answer.status == status
