"""One cluster with one node for all tests of a run, made by `make e2e` in namespaces of its own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from gpupod_rehearsal.controlplane import ControlPlane
from nodekit import audit
from nodekit.enter import INSIDE
from nodekit.node import cluster, ctr_of
from nodekit.stage import NodeStage

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if INSIDE not in os.environ:
        pytest.skip("these tests run on a node of their own: make e2e")
    return tmp_path_factory.mktemp("node")


@pytest.fixture(scope="session")
def node(folder: Path) -> Iterator[ControlPlane]:
    with cluster(folder, apiserver_args=audit.flags(folder)) as plane:
        yield plane


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stage(node: ControlPlane, folder: Path) -> AsyncIterator[NodeStage]:
    async with NodeStage(node, ctr_of(folder), replicas=2) as made:
        yield made
