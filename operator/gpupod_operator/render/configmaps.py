"""The ConfigMaps of a namespace: four files in `pods-conf`, and more of the same in `pods-conf-1`... for many pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpupod_operator.render.known_hosts import host_line, known_hosts
from gpupod_operator.render.mcp_env import key_stems, mcp_json, variables
from gpupod_operator.render.pods_conf import GAP, HEADER, pods_conf
from gpupod_operator.render.rows import Row
from gpupod_operator.render.ssh_config import DEFAULT_PATHS, SshPaths, host_block, ssh_config

STEM = "pods-conf"
SHARD_BYTES = 900 * 1024
"""Data bytes of one ConfigMap. The API server refuses more than 1 MiB, names and metadata included."""


def config_maps(
    rows: Sequence[Row],
    paths: SshPaths = DEFAULT_PATHS,
    *,
    limit: int = SHARD_BYTES,
) -> dict[str, dict[str, str]]:
    """Data by ConfigMap name; empty without rows. A row's four parts stay in one shard."""
    stems = key_stems(rows)
    maps: dict[str, dict[str, str]] = {}
    for number, shard in enumerate(_shards(rows, stems, paths, limit)):
        env = {key: value for row in shard for key, value in variables(row, stems[row.name], paths).items()}
        maps[STEM if number == 0 else f"{STEM}-{number}"] = {
            "pods.conf": pods_conf(shard),
            "ssh_config": ssh_config(shard, paths),
            "known_hosts": known_hosts(shard),
            "mcp.env.json": mcp_json(env),
        }
    return maps


def _shards(rows: Sequence[Row], stems: dict[str, str], paths: SshPaths, limit: int) -> Iterator[list[Row]]:
    # an upper bound: the widest value of each column counts for every row
    width = sum(
        max((len(str(getattr(row, field))) for row in rows), default=0) + len(GAP)
        for field in ("name", "host", "port", "gpus", "gpu_type", "label")
    )
    shard: list[Row] = []
    size = head = sum(len(line) + 1 for line in HEADER) + len("{\n}\n")
    for row in rows:
        env = mcp_json(variables(row, stems[row.name], paths))
        cost = width + len(f"{host_block(row, paths)}\n{host_line(row)}{env}".encode())
        if shard and size + cost > limit:
            yield shard
            shard, size = [], head
        shard.append(row)
        size += cost
    if shard:
        yield shard
