"""Leader election by a `coordination.k8s.io/v1` Lease: one operator acts, the others wait.

Not `kubernetes.aio.leaderelection` (37.0): it has no moment until which the holder may act (a hung renewal leaves the
old leader acting while the new one starts), it reckons with the wall clock, its calls have no timeout of their own, and
it never gives the Lease back at exit. These are the points that decide whether two operators rent two pods.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from gpupod_operator.cluster import resources
from gpupod_operator.cluster.transport import ApiTransport
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable, Clock


def suspended_time() -> float:
    """Seconds on a clock that also runs while the machine is suspended.

    With the ordinary monotonic clock a virtual machine that was frozen for an hour would wake up as the leader.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds; client-go's defaults. A standby takes over at most `duration` + `retry` after the last renewal."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.renew_deadline < self.duration:
            raise ValueError("a lease needs retry < renew_deadline < duration")


class Lease:
    """The right to act, for one process. `identity` must be new for each process.

    `acquire()`, then `keep()` until it returns (the Lease is lost; end the process), `release()` on a clean exit.
    """

    def __init__(
        self,
        transport: ApiTransport,
        *,
        namespace: str,
        name: str,
        identity: str,
        clock: Clock,
        times: LeaseTimes = LeaseTimes(),
        monotonic: Callable[[], float] = suspended_time,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self.identity = identity
        self._transport = transport
        self._namespace = namespace
        self._name = name
        self._clock = clock
        self._times = times
        self._monotonic = monotonic
        self._sleep = sleep
        self._deadline = float("-inf")
        self._ours = False
        self._held: dict[str, Any] | None = None
        self._watched: tuple[object, float] = (None, 0.0)

    @property
    def deadline(self) -> float:
        """The moment on `monotonic` until which this process may act; minus infinity without the Lease.

        Counted from before the renewal was sent, so it lies at least `duration - renew_deadline` (5 s) before the
        first moment at which a standby may take over, whatever the network did to the renewal.
        """
        return self._deadline

    def may_act(self) -> bool:
        """Ask right before each mutating call, of Kubernetes and of the provider alike."""
        return self._monotonic() < self._deadline

    async def acquire(self) -> None:
        """Wait until the Lease is ours.

        An API server that does not answer is waited for. Raises ApiForbidden, ApiNotFound (no such namespace) and
        ApiInvalid: a wrong set-up that waiting does not mend.
        """
        while True:
            wait = self._times.retry
            try:
                left = await self._try_acquire()
            except (ApiUnavailable, ApiConflict):
                left = wait
            if left <= 0:
                return
            await self._sleep(min(wait, left))

    async def keep(self) -> str:
        """Renew until that fails; why it is lost. From then on `may_act()` is False for good."""
        while True:
            await self._sleep(min(self._times.retry, max(0.0, self._left)))
            try:
                lost = await self._renew()
            except (ApiUnavailable, ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound) as error:
                lost = None if self.may_act() else f"not renewed within {self._times.renew_deadline:g} s: {error}"
            if lost is not None:
                self._ours, self._deadline = False, float("-inf")
                return lost

    async def release(self) -> None:
        """Stop acting and give the Lease back, so that a standby need not wait for it to run out.

        Call it when `keep` is over or cancelled. Raises what the API server answers; then the Lease runs out by itself.
        """
        # before the Lease is free: not one call of ours may follow the successor's first
        self._deadline = float("-inf")
        ours, self._ours = self._ours, False
        held, self._held = self._held, None
        if not ours:
            return
        if held is None:
            # a renewal was cut off, so its resourceVersion is not known
            held = await self._get(self._call_timeout)
        if held["spec"].get("holderIdentity") == self.identity:
            spec = held["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._now()}
            # a conflict: somebody has it already, so there is nothing to give back
            with contextlib.suppress(ApiConflict):
                await self._put(held | {"spec": spec}, self._call_timeout)

    async def _try_acquire(self) -> float:
        """Seconds until it is worth another try; 0: acquired."""
        sent = self._monotonic()
        try:
            found = await self._get(self._call_timeout)
        except ApiNotFound:
            created = await self._create()
            return self._own(created, sent)
        spec = found.get("spec") or {}
        holder = spec.get("holderIdentity")
        if holder and holder != self.identity:
            left = self._holder_has_left(spec)
            if left > 0:
                return left
        fields: dict[str, Any] = {"renewTime": self._now()}
        if holder != self.identity:
            fields |= {"acquireTime": fields["renewTime"], "leaseTransitions": (spec.get("leaseTransitions") or 0) + 1}
        fields |= {"holderIdentity": self.identity, "leaseDurationSeconds": self._duration}
        sent = self._monotonic()
        return self._own(await self._put(found | {"spec": spec | fields}, self._call_timeout), sent)

    def _holder_has_left(self, spec: dict[str, Any]) -> float:
        """Seconds that the present holder still has, by our own clock since we saw its last renewal.

        Its `renewTime` is only compared, never reckoned with: the two machines' clocks need not agree.
        """
        now = self._monotonic()
        record = (spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseTransitions"))
        if record != self._watched[0]:
            self._watched = (record, now)
        duration = float(spec.get("leaseDurationSeconds") or self._times.duration)
        return self._watched[1] + duration - now

    async def _renew(self) -> str | None:
        """None: renewed. Else why the Lease is lost. Raises when neither is known."""
        held, self._held = self._held, None
        if held is None:
            # the last renewal's outcome is not known: look who holds it
            held = await self._get(self._renew_timeout)
            holder = (held.get("spec") or {}).get("holderIdentity")
            if holder != self.identity:
                return f"taken over by {holder or 'nobody yet'}"
        sent = self._monotonic()
        renewed = await self._put(held | {"spec": held["spec"] | {"renewTime": self._now()}}, self._renew_timeout)
        if not self.may_act():
            # the answer came too late: whoever asked `may_act` meanwhile was told that we are out
            return f"not renewed within {self._times.renew_deadline:g} s"
        self._own(renewed, sent)
        return None

    async def _create(self) -> dict[str, Any]:
        now = self._now()
        spec = {"holderIdentity": self.identity, "leaseDurationSeconds": self._duration, "leaseTransitions": 0}
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": spec | {"acquireTime": now, "renewTime": now},
        }
        path = resources.lease(self._namespace)
        return await self._transport.request("POST", path, body=body, within=self._call_timeout)

    async def _get(self, within: float) -> dict[str, Any]:
        return await self._transport.request("GET", self._path, within=within)

    async def _put(self, body: dict[str, Any], within: float) -> dict[str, Any]:
        # carries the resourceVersion of what was read: of two that try, one gets 409
        return await self._transport.request("PUT", self._path, body=body, within=within)

    def _own(self, lease: dict[str, Any], sent: float) -> float:
        self._held, self._ours = lease, True
        self._deadline = sent + self._times.renew_deadline
        return 0.0

    def _now(self) -> str:
        return self._clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    @property
    def _left(self) -> float:
        return self._deadline - self._monotonic()

    @property
    def _path(self) -> str:
        return resources.lease(self._namespace, self._name)

    @property
    def _duration(self) -> int:
        return max(1, round(self._times.duration))

    @property
    def _call_timeout(self) -> float:
        # two tries must fit between a failed renewal and the deadline
        return self._times.renew_deadline / 2

    @property
    def _renew_timeout(self) -> float:
        # waiting longer than we may act would only delay the end
        return max(0.1, min(self._call_timeout, self._left))
