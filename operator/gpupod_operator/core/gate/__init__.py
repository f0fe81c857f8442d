"""The only place that says "this pod may be destroyed, stopped or reset", and writes the receipt. Pure."""

from gpupod_operator.core.gate.judge import judge
from gpupod_operator.core.gate.question import CellFacts, GateAct, GateNeed, GateQuestion, GateReason
from gpupod_operator.core.gate.verdict import (
    Block,
    Blocked,
    DrainFirst,
    NeedsFacts,
    Safe,
    Undecided,
    Verdict,
    price_of_waiting,
)

__all__ = [
    "Block",
    "Blocked",
    "CellFacts",
    "DrainFirst",
    "GateAct",
    "GateNeed",
    "GateQuestion",
    "GateReason",
    "NeedsFacts",
    "Safe",
    "Undecided",
    "Verdict",
    "judge",
    "price_of_waiting",
]
