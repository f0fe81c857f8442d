"""pods.conf: six whitespace-separated fields a row, `#` comments, and a newline at the end."""

from __future__ import annotations

from collections.abc import Sequence

from gpupod_operator.render.rows import Row

FORMAT = "# name host port gpus gpu_type label"
HEADER = (
    "# Written by gpupod-operator from the committed status of the GpuPods; edits are overwritten.",
    "# To pin an endpoint, set spec.podsConf.endpointOverride of the GpuPod.",
    FORMAT,
)
"""Its last line names the format, as readers of the file expect."""
GAP = "  "


def pods_conf(rows: Sequence[Row]) -> str:
    """The file. Columns are padded to their widest value; the last one is not."""
    table = [_fields(row) for row in rows]
    widths = [max((len(line[column]) for line in table), default=0) for column in range(6)]
    lines = (GAP.join(value.ljust(width) for value, width in zip(line, widths, strict=True)).rstrip() for line in table)
    return "\n".join((*HEADER, *lines)) + "\n"


def _fields(row: Row) -> tuple[str, ...]:
    return (row.name, row.host, str(row.port), str(row.gpus), row.gpu_type, row.label)
