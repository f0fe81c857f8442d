"""What the operator tells the agent besides the cells: endpoint, attempt, tokens. And the environment of an upload."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpupod_cell.layout import Layout, read_json
from gpupod_cell.orders import Order
from gpupod_cell.refusal import AUTH, Refusal

INIT_ENVIRONMENT = "/proc/1/environ"
"""The container's environment, which SSH sessions on a rented pod do not inherit."""


def hub_endpoint(layout: Layout) -> str | None:
    """The Hub's address: settings.json, else HF_ENDPOINT, else None for the library's default."""
    return _settings(layout).get("hubEndpoint") or os.environ.get("HF_ENDPOINT") or None


def runpod_endpoint(layout: Layout) -> str | None:
    """The address of RunPod's API that the operator uses; None where it named none."""
    return _settings(layout).get("runpodEndpoint") or None


def container_variable(name: str) -> str:
    """A variable of the container; empty when it has none of that name."""
    return os.environ.get(name) or _from_init(name)


def token_of(layout: Layout, order: Order) -> str:
    """The token of a cell. Raises Refusal `TokenMissing`."""
    if order.token_from == "PodEnv":  # noqa: S105 - the name of a source
        token = container_variable("HF_TOKEN")
        where = "HF_TOKEN is not in the pod's environment (tokenFrom: PodEnv)"
    else:
        path = layout.token(order.uid)
        try:
            token = path.read_text().strip()
        except OSError:
            token = ""
        where = f"{path} is missing; the operator writes it again at its next visit"
    if not token:
        raise Refusal("TokenMissing", where, AUTH, retry_after=600)
    return token


def upload_environment(layout: Layout, *, no_xet: bool, base: Mapping[str, str]) -> dict[str, str]:
    """The environment in which huggingface_hub is imported: quiet, no telemetry, caches off the shared volume."""
    # Not below the root: that may be a network volume, where the caches of huggingface_hub and Xet are slow.
    scratch = Path(base.get("TMPDIR") or "/tmp") / "gpupod-hf"  # noqa: S108 - caches only: nothing secret or trusted
    chosen = {
        "HF_HOME": str(scratch),
        "HF_XET_CACHE": str(scratch / "xet"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
    }
    if no_xet:
        chosen["HF_HUB_DISABLE_XET"] = "1"
    endpoint = hub_endpoint(layout)
    if endpoint:
        chosen["HF_ENDPOINT"] = endpoint
    return {**base, **chosen}


def _settings(layout: Layout) -> dict[str, Any]:
    try:
        return read_json(layout.settings) or {}
    except ValueError:
        return {}


def _from_init(name: str) -> str:
    try:
        entries = Path(INIT_ENVIRONMENT).read_bytes().split(b"\0")
    except OSError:
        return ""
    prefix = f"{name}=".encode()
    return next((e[len(prefix) :].decode(errors="replace") for e in entries if e.startswith(prefix)), "")
