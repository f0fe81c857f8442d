"""The environment of the `ssh` MCP server: `SSH_SERVER_<NAME>_*` keys for each row."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from gpupod_operator.render.rows import Row
from gpupod_operator.render.ssh_config import DEFAULT_PATHS, SshPaths

DEFAULT_DIR = "/workspace"


def mcp_env(rows: Sequence[Row], paths: SshPaths = DEFAULT_PATHS) -> dict[str, str]:
    """The variables of all rows. Values are strings, as an MCP file's `env` wants them."""
    stems = key_stems(rows)
    return {key: value for row in rows for key, value in variables(row, stems[row.name], paths).items()}


def mcp_json(env: Mapping[str, str]) -> str:
    """Sorted JSON with a newline at the end."""
    return json.dumps(env, indent=2, sort_keys=True) + "\n"


def key_stems(rows: Sequence[Row]) -> dict[str, str]:
    """`SSH_SERVER_<NAME>` by row name.

    Upper case, and `_` for what an environment name may not hold. Of names that differ in that alone, like `a-b` and
    `a.b`, the later ones get a number, so that none hides another.
    """
    stems: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(row.name for row in rows):
        base = re.sub(r"[^A-Z0-9_]", "_", name.upper())
        stem, number = base, 1
        while stem in taken:
            number += 1
            stem = f"{base}_{number}"
        taken.add(stem)
        stems[name] = f"SSH_SERVER_{stem}"
    return stems


def variables(row: Row, stem: str, paths: SshPaths) -> dict[str, str]:
    """The seven variables of one row."""
    return {
        f"{stem}_HOST": row.host,
        f"{stem}_PORT": str(row.port),
        f"{stem}_USER": "root",
        f"{stem}_KEYPATH": paths.identity_file,
        f"{stem}_DEFAULT_DIR": DEFAULT_DIR,
        f"{stem}_PLATFORM": "linux",
        f"{stem}_DESCRIPTION": f"{row.label} - {row.gpus}x {row.gpu_type}",
    }
