"""What has to be true of a cluster before the operator serves it; else it ends with one line that says what to do."""

from __future__ import annotations

import logging

from gpupod_operator.api.names import API_VERSION, GPUPODS, SWEEPCELLS
from gpupod_operator.cluster.client import ClusterClient
from gpupod_operator.cluster.transport import ApiTransport
from gpupod_operator.ports import ApiForbidden, ApiNotFound, ApiUnavailable
from gpupod_operator.runtime.left_behind import left_behind
from gpupod_operator.runtime.settings import Settings

log = logging.getLogger("gpupod_operator")

CRDS = ("gpupods.gpupod.dev", "sweepcells.gpupod.dev")


class StartError(Exception):
    """Why this process cannot serve: one sentence that says why and what to do. Exit code 2."""


async def check_cluster(transport: ApiTransport, settings: Settings) -> None:
    """The API server answers and has our CRDs. Without them it is told what bills on for objects that are gone."""
    for name in CRDS:
        try:
            await transport.request("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}", within=10)
        except ApiNotFound:
            await _tell_what_bills(transport, settings)
            raise StartError(f"the CRD {name} is not in this cluster: kubectl apply -f crds/") from None
        except ApiForbidden as error:
            if settings.watch_namespaces:
                await _check_served(transport)
                return
            raise StartError(f"no right to read the CRD {name}: apply manifests/base/rbac.yaml ({error})") from None
        except ApiUnavailable as error:
            raise StartError(f"the Kubernetes API cannot be reached: {error}") from None


async def _check_served(transport: ApiTransport) -> None:
    """With Roles alone the CRDs cannot be read; that their kinds are served is told to everybody."""
    try:
        told = await transport.request("GET", f"/apis/{API_VERSION}", within=10)
    except (ApiNotFound, ApiForbidden) as error:
        raise StartError(f"{API_VERSION} is not served: kubectl apply -f crds/ ({error})") from None
    served = {resource["name"] for resource in told.get("resources") or ()}
    missing = sorted({GPUPODS, SWEEPCELLS} - served)
    if missing:
        raise StartError(f"{', '.join(missing)} of {API_VERSION} are not served: kubectl apply -f crds/")


async def instance_of(settings: Settings, cluster: ClusterClient) -> str:
    """Who we are among the operators of a RunPod account. Raises StartError."""
    try:
        return settings.instance_id or await cluster.namespace_uid("kube-system")
    except ApiForbidden:
        raise StartError(
            "no right to read the namespace kube-system, whose uid tells this cluster's pods from others': give the "
            "right, or set --instance-id to a name that no other cluster with this RunPod account has, and keep it"
        ) from None


async def _tell_what_bills(transport: ApiTransport, settings: Settings) -> None:
    try:
        system = await transport.request("GET", "/api/v1/namespaces/kube-system", within=10)
    except (ApiNotFound, ApiForbidden, ApiUnavailable) as error:
        log.warning("whether pods of this operator bill cannot be known: %s", error)
        return
    for line in await left_behind(settings, settings.instance_id or str(system["metadata"]["uid"])):
        log.error("%s", line)
