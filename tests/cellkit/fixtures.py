"""Fixtures; a test module takes them by importing their names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cellkit.pod import READ_ONLY, REPO, TOKEN, Pod
from gpupod_rehearsal.hub.accounts import HubToken
from gpupod_rehearsal.hub.simulator import HubSimulator


@pytest.fixture
async def hub() -> AsyncIterator[HubSimulator]:
    tokens = [HubToken("ada", secret=TOKEN), HubToken("ada", role="read", secret=READ_ONLY)]
    async with HubSimulator(tokens=tokens) as running:
        running.create_repo(REPO)
        yield running


@pytest.fixture
async def pod(tmp_path: Path, hub: HubSimulator) -> AsyncIterator[Pod]:
    made = Pod(tmp_path, hub.url)
    yield made
    for process in made.processes:
        if process.returncode is None:
            process.kill()
            await process.wait()
