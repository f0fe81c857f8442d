"""The RunPod account as a person's key shows it. Reads only."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpupod_operator.cli.plugin.failure import Failed
from gpupod_operator.core.provider import ProviderPod
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.client import RunPodClient
from gpupod_operator.runpod.governor import Governor
from gpupod_operator.runpod.keys import KeySource
from gpupod_operator.runpod.requests import runpod_session


@dataclass(frozen=True, slots=True)
class Listed:
    """Every pod of the account, all pages. `account` is its id, or the key's fingerprint where the key may not ask."""

    account: str
    pods: Sequence[ProviderPod]


def list_account(key_file: Path, api: str) -> Listed:
    """Raises Failed with RunPod's own words; a part of a list is never returned."""
    if not key_file.is_file():
        raise Failed(f"no key file {key_file}")
    try:
        return asyncio.run(_list(KeySource.from_file(key_file), api))
    except ProviderError as error:
        raise Failed(f"RunPod: {error}") from None


async def _list(key: KeySource, api: str) -> Listed:
    session = runpod_session(api)
    try:
        client = RunPodClient(session, key, Governor(), base_url=api)
        identity = await client.account()
        return Listed(identity.id, await client.list_pods())
    finally:
        await session.close()
