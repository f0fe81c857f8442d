"""The seams to the outside: Protocols, and the typed errors that cross them."""

from gpupod_operator.ports.errors import (
    ApiConflict,
    ApiForbidden,
    ApiInvalid,
    ApiNotFound,
    ApiUnavailable,
    HubError,
    HubForbidden,
    HubRateLimited,
    HubRepoNotFound,
    HubUnauthorized,
    HubUnavailable,
    LaunchRefused,
    ProviderError,
    ShellError,
)
from gpupod_operator.ports.protocols import (
    ArtifactHub,
    Clock,
    Cluster,
    GpuProvider,
    PodShell,
)

__all__ = [
    "ApiConflict",
    "ApiForbidden",
    "ApiInvalid",
    "ApiNotFound",
    "ApiUnavailable",
    "ArtifactHub",
    "Clock",
    "Cluster",
    "GpuProvider",
    "HubError",
    "HubForbidden",
    "HubRateLimited",
    "HubRepoNotFound",
    "HubUnauthorized",
    "HubUnavailable",
    "LaunchRefused",
    "PodShell",
    "ProviderError",
    "ShellError",
]
