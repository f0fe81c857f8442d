"""Request bodies the vendor accepts, per age of its contract.

`AUGUST` follows the published OpenAPI of 2026-08; `NOVEMBER` adds what the documentation pages and the typed clients of
October and November 2026 know: exec-form commands and per-GPU placement floors.
"""

from __future__ import annotations

from enum import StrEnum

from gpupod_rehearsal.runpod.schema import Flag, Listing, Mapped, Record, Schema, Text, Whole

#: Largest request body in bytes, also after a template is merged in; more is 413.
MAX_BODY_BYTES = 102_400

_VERSION = r"^\d+\.\d+$"
_PUBLIC_KEY = r"^(ssh|ecdsa|sk)-[^\s]+ [^\s]+([ \t][^\n\r]*)?$"


class Profile(StrEnum):
    """Which age of the v2 contract the simulator speaks."""

    AUGUST = "august"
    NOVEMBER = "november"


_PERSISTENT = Record({"size": Whole(minimum=10), "path": Text()}, required=("size", "path"))
_NETWORK = Record({"volumeId": Text(), "path": Text()}, required=("volumeId", "path"))
_MOUNTS = Record({"persistent": _PERSISTENT, "network": Listing(_NETWORK, max_items=1)})
_CPU = Record({"id": Text(min_length=1), "vcpuCount": Whole(minimum=2)}, required=("id", "vcpuCount"))

POD_ACTION = Record({"action": Text(enum=("start", "stop", "restart", "terminate"))}, required=("action",))
SSH_KEYS = Record({"keys": Listing(Text(pattern=_PUBLIC_KEY))}, required=("keys",))
CREATE_VOLUME = Record(
    {
        "name": Text(min_length=1),
        "size": Whole(10, 4096),
        "dataCenter": Text(min_length=1),
        "type": Text(enum=("STANDARD", "HIGH_PERFORMANCE")),
    },
    required=("name", "size", "dataCenter"),
)
UPDATE_VOLUME = Record({"name": Text(min_length=1), "size": Whole(10, 4096)}, min_properties=1)


def create_pod(profile: Profile) -> Record:
    """The body of `POST /v2/pods`."""
    gpu: dict[str, Schema] = {
        "id": Text(),
        "count": Whole(minimum=1),
        "allowedCudaVersions": Listing(Text(pattern=_VERSION)),
        "minCudaVersion": Text(pattern=_VERSION),
    }
    if profile is Profile.NOVEMBER:
        gpu |= {"minRamPerGpu": Whole(minimum=1), "minVcpuCountPerGpu": Whole(minimum=1)}
    fields: dict[str, Schema] = {
        **_container(profile),
        "name": Text(min_length=1),
        "cloud": Text(enum=("SECURE", "COMMUNITY")),
        "cpu": _CPU,
        "gpu": Record(gpu, required=("id",)),
        "dataCenterIds": Listing(Text()),
        "globalNetworking": Flag(),
        "mounts": _MOUNTS,
        "startJupyter": Flag(),
        "startSsh": Flag(),
        "templateId": Text(min_length=1),
    }
    return Record(fields, required=("name",), required_unless={"image": "templateId"})


def update_pod(profile: Profile) -> Record:
    """The body of `PATCH /v2/pods/{id}`."""
    fields: dict[str, Schema] = {
        **_container(profile),
        "name": Text(min_length=1),
        "globalNetworking": Flag(),
        "locked": Flag(),
        "mounts": _MOUNTS,
        "templateId": Text(),
    }
    return Record(fields)


def _container(profile: Profile) -> dict[str, Schema]:
    fields: dict[str, Schema] = {
        "image": Text(),
        "args": Text(),
        "disk": Whole(minimum=1),
        "env": Mapped(Text()),
        "ports": Listing(Text()),
        "registry": Text(nullable=True),
    }
    if profile is Profile.NOVEMBER:
        fields |= {"entrypoint": Listing(Text()), "cmd": Listing(Text())}
    return fields
