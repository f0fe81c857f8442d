"""`python -m gpupod_operator.cli.docs [docs/]`: writes the pages that follow from the code, so that they cannot lag.

A test holds the pages in the repository against this.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.remedies import REMEDIES
from gpupod_operator.api.supported import GPUPOD, SWEEPCELL

BEGIN = "<!-- generated: python -m gpupod_operator.cli.docs -->"
END = "<!-- /generated -->"

REASONS = f"""\
{BEGIN}
# Reasons

Each condition, event and blocked act names one of these words, and the message beside it has the particulars: pod id,
price, file, time. `kubectl gpupod why NAME` prints the ones that matter now.

| Reason | What to do |
|---|---|
{{rows}}
{END}
"""


def reasons_page() -> str:
    """docs/reasons.md, whole."""
    rows = (f"| `{reason}` | {REMEDIES[reason]} |" for reason in sorted(Reason, key=str))
    return REASONS.format(rows="\n".join(rows))


def fields_block() -> str:
    """The table of fields without behaviour, for docs/limits.md."""
    refuses, shows = "`Supported=False`; the operator refuses to act", "`Supported=False`; it has no effect"
    pods = [f"| GpuPod | `{field.path}` | {refuses if field.restricting else shows} |" for field in GPUPOD]
    blocks, ignored = "phase `Blocked`, reason `NotImplementedYet`", "it has no effect"
    cells = [f"| SweepCell | `{field.path}` | {blocks if field.restricting else ignored} |" for field in SWEEPCELL]
    rows = [*pods, *cells]
    return "\n".join((BEGIN, "| Kind | Field | While it is set |", "|---|---|---|", *rows, END))


def with_block(page: str) -> str:
    """The page with the generated block renewed. Raises ValueError for a page without exactly one."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"the page has not exactly one block {BEGIN} ... {END}")
    before, _, rest = page.partition(BEGIN)
    return before + fields_block() + rest.partition(END)[2]


def main(arguments: Sequence[str]) -> None:
    """Write both pages into the folder."""
    folder = Path(arguments[0] if arguments else "docs")
    (folder / "reasons.md").write_text(reasons_page(), encoding="utf-8")
    limits = folder / "limits.md"
    limits.write_text(with_block(limits.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
