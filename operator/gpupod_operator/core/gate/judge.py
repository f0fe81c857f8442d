"""May this act lose data? One question, one verdict, asked again at every pass.

Order of the law (behaviour.md 5): proven gone; account, id and ownership; shields; approval and what a migration
needs; `artifacts: Disposable`; then every cell of the pod.
"""

from __future__ import annotations

from gpupod_operator.api.policies import ArtifactsPolicy, InFlightPolicy, PodState
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate.cells import stand, stands_alone
from gpupod_operator.core.gate.identity import live_pod
from gpupod_operator.core.gate.permit import RERUN_REASONS, permit
from gpupod_operator.core.gate.question import CellFacts, GateNeed, GateQuestion, GateReason
from gpupod_operator.core.gate.standing import standing_blocks
from gpupod_operator.core.gate.standings import CellStanding, Standing
from gpupod_operator.core.gate.survival import nothing_produced, wiped_by_stop, workload_is_ours
from gpupod_operator.core.gate.verdict import (
    Block,
    Blocked,
    DrainFirst,
    NeedsFacts,
    Undecided,
    Verdict,
    price_of_waiting,
)
from gpupod_operator.core.gate.visits import Visit, needs_visit, not_yet_looked, read_visit
from gpupod_operator.core.known import Unknown
from gpupod_operator.core.provider import ProviderPod


def judge(q: GateQuestion) -> Verdict:
    """Safe with its receipt, or why not. Never Safe on an unknown, never on a fact of another pass."""
    if q.gone:
        return permit(q, (), "no pod of this attempt exists")
    pod = live_pod(q)
    if not isinstance(pod, ProviderPod):
        return pod
    if q.reason is GateReason.UNDO and q.created_by_us and not q.launch_confirmed:
        return permit(q, (), "undone before any launch")
    blocks = standing_blocks(q, pod)
    if blocks:
        return Blocked(blocks, q.price_per_hour)
    if q.spec.remediation.artifacts is ArtifactsPolicy.DISPOSABLE:
        return permit(q, (), "artifacts: Disposable")
    if q.cells is None:
        return NeedsFacts(frozenset({GateNeed.CELLS}))
    if isinstance(q.cells, Unknown):
        return _undecided(q, f"the cells cannot be read: {q.cells.why}")
    cells = q.cells.value
    if nothing_produced(q, cells):
        standings = tuple(CellStanding(c.name, Standing.FINE, "nothing can have been produced") for c in cells)
        return permit(q, standings, "nothing can have been produced on this pod")
    if not cells:
        return _no_cells(q)
    return _weigh_cells(q, pod, cells)


def _no_cells(q: GateQuestion) -> Verdict:
    if q.abandoned is not None:
        return permit(q, (), f"no cell declared; abandon-data: {q.abandoned}")
    if q.reason is GateReason.DELETE or (q.reason is GateReason.STOP and q.spec.state is PodState.STOPPED):
        return permit(q, (), f"no cell declared; a person ordered {q.reason}")
    edit = "declare SweepCells for this pod, or set remediation.artifacts: Disposable"
    if q.reason in (GateReason.RESET, GateReason.REPLACE):
        return Blocked((Block(Reason.NO_CELLS_DECLARED, "no cell is declared", edit),), q.price_per_hour)
    return _undecided(q, f"no cell is declared, so nothing is known to be safe; {edit}", Reason.NO_CELLS_DECLARED)


def _weigh_cells(q: GateQuestion, pod: ProviderPod, cells: tuple[CellFacts, ...]) -> Verdict:
    alone = {cell.uid: stands_alone(q, pod, cell) for cell in cells}
    open_cells = [cell for cell in cells if alone[cell.uid] is None]
    if open_cells and needs_visit(q, pod):
        return NeedsFacts(frozenset({GateNeed.SHELL}))
    visit = read_visit(q, pod)
    # After the visit, so that the listing is newer than every write that the visit shows.
    if any(cell.listing is None and not wiped_by_stop(q, pod, cell.spec) for cell in open_cells):
        return NeedsFacts(frozenset({GateNeed.HUB}))
    standings = tuple(alone[cell.uid] or stand(q, pod, visit, cell) for cell in cells)
    return _sum_up(q, visit, tuple(_with_policy(q, s) for s in standings), cells)


def _with_policy(q: GateQuestion, s: CellStanding) -> CellStanding:
    """Unfinished cells that the policy does not let go stand in the way like finished ones."""
    if s.standing is not Standing.UNFINISHED:
        return s
    if q.reason in RERUN_REASONS and q.spec.remediation.in_flight is InFlightPolicy.BLOCK:
        return _hold(s, "remediation.inFlight is Block", "set remediation.inFlight: Rerun")
    if s.producing and not workload_is_ours(q) and q.reason is not GateReason.DELETE:
        return _hold(s, "its workload was not launched by the operator, so it cannot be drained", "wait for it")
    return s


def _hold(s: CellStanding, why: str, edit: str) -> CellStanding:
    return CellStanding(
        s.name, Standing.BLOCKS, f"{s.message}; {why}", reason=Reason.CELLS_IN_FLIGHT, edit=f"{edit}, {s.edit}"
    )


def _sum_up(
    q: GateQuestion, visit: Visit, standings: tuple[CellStanding, ...], cells: tuple[CellFacts, ...]
) -> Verdict:
    by = {kind: tuple(s for s in standings if s.standing is kind) for kind in Standing}
    unfinished = by[Standing.UNFINISHED]
    in_the_way = by[Standing.BLOCKS] or by[Standing.UNKNOWN]
    if unfinished and visit.live is None:
        return _undecided(q, "whether the workload runs could not be read")
    if unfinished and visit.live and (q.reason is GateReason.DELETE or not in_the_way):
        names = tuple(s.name for s in unfinished)
        return DrainFirst(names, f"the workload is computing {len(names)} cells; it is ended before {q.reason}")
    if by[Standing.BLOCKS]:
        return Blocked(
            _blocks((*by[Standing.BLOCKS], *by[Standing.UNKNOWN], *by[Standing.UPLOADING])), q.price_per_hour
        )
    if by[Standing.UNKNOWN]:
        first = by[Standing.UNKNOWN][0]
        more = len(by[Standing.UNKNOWN]) - 1
        return _undecided(q, first.message + (f" (and {more} more cells)" if more else ""), first.reason)
    if by[Standing.UPLOADING]:
        return Blocked(_blocks(by[Standing.UPLOADING]), q.price_per_hour)
    if unfinished and (why := not_yet_looked(q, visit)) is not None:
        return _undecided(q, why)
    return permit(q, standings, "", cells)


def _blocks(standings: tuple[CellStanding, ...]) -> tuple[Block, ...]:
    return tuple(Block(s.reason, s.message, s.edit, s.name, s.missing, s.mismatched) for s in standings)


def _undecided(q: GateQuestion, why: str, reason: Reason = Reason.CELLS_UNKNOWN) -> Undecided:
    return Undecided(why + price_of_waiting(q.price_per_hour), reason)
