"""RunPod's REST v2 as the operator uses it: every route that it needs and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp
from pydantic import ValidationError

from gpupod_operator.core.ownership import OwnedPod
from gpupod_operator.core.provider import (
    AccountIdentity,
    CreateRequest,
    Failure,
    GpuOffer,
    NetworkVolume,
    PatchRequest,
    ProviderPod,
    Stamp,
)
from gpupod_operator.ports import GpuProvider, ProviderError
from gpupod_operator.runpod import calls
from gpupod_operator.runpod.bodies import ActionBody, create_body, patch_body
from gpupod_operator.runpod.catalog import offer_of, volume_of
from gpupod_operator.runpod.errors import IncompleteAnswer, Unsupported, malformed
from gpupod_operator.runpod.event_stream import read_log
from gpupod_operator.runpod.governor import Governor
from gpupod_operator.runpod.keys import KeySource
from gpupod_operator.runpod.models import NONCE, OWNER, pod_of
from gpupod_operator.runpod.pages import read_pages
from gpupod_operator.runpod.redaction import redact
from gpupod_operator.runpod.requests import RUNPOD, TIMEOUT, CallObserver, Reply, RunPodRequests
from gpupod_operator.runpod.tolerance import Malformed

# The past of a log comes at once; a line after this silence is a new one, and waiting for new ones would never end.
LOG_QUIET_SECONDS, LOG_SECONDS = 1.0, 5.0
MOST_LOG_LINES = 5000

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Balance:
    """USD. `mode` is PREPAID (pods end when it is used up) or POSTPAID."""

    amount: Decimal
    mode: str


class RunPodClient(GpuProvider):
    """`GpuProvider` over HTTP. The session is shared and closed by its owner.

    Reads raise ProviderError with UNAVAILABLE, API_GONE, THROTTLED, UNAUTHORIZED, FORBIDDEN or NOT_FOUND. Nothing is
    repeated inside but what a 429 refused before processing.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        key: KeySource,
        governor: Governor,
        *,
        base_url: str = RUNPOD,
        on_call: CallObserver | None = None,
        timeout: aiohttp.ClientTimeout = TIMEOUT,
        page_limit: int | None = None,
        permit: Callable[[], bool] = lambda: True,
    ) -> None:
        self._requests = RunPodRequests(
            session, key, governor, base_url=base_url, on_call=on_call, timeout=timeout, permit=permit
        )
        self._page_limit = page_limit

    async def account(self) -> AccountIdentity:
        """Who pays, asked of the vendor. Without the scope, or before the route existed, the key stands for itself."""
        fingerprint = self._requests.key.current().fingerprint
        try:
            reply = await self._requests.send(calls.ACCOUNT, "/account")
        except ProviderError as error:
            if error.failure in (Failure.FORBIDDEN, Failure.NOT_FOUND) or isinstance(error, Unsupported):
                return AccountIdentity(fingerprint, fingerprint, verified=False)
            raise
        who = reply.document.get("id")
        if not isinstance(who, str) or not who:
            raise malformed(calls.ACCOUNT.kind, reply.status, reply.headers, "the account has no id")
        return AccountIdentity(who, fingerprint, verified=True)

    async def list_pods(self) -> tuple[ProviderPod, ...]:
        """Every pod of the account: all pages, each pod once and told by id and owner.

        Raises:
            IncompleteAnswer: (UNAVAILABLE) anything less. ProviderError: a page was not answered.
        """
        items = await read_pages(self._requests, calls.LIST_PODS, "/pods", "pods", limit=self._page_limit)
        pods = _each(pod_of, items)
        seen: set[str] = set()
        for pod in pods:
            if pod.id in seen:
                raise IncompleteAnswer("the list shows a pod twice: its pages do not belong together")
            seen.add(pod.id)
        return pods

    async def get_pod(self, pod_id: str) -> ProviderPod:
        """The pod as of now. NOT_FOUND: unknown to this key, which is no proof that it is gone."""
        reply = await self._requests.send(calls.GET_POD, f"/pods/{_segment(pod_id)}")
        return _pod(calls.GET_POD, reply, pod_id)

    async def create_pod(self, request: CreateRequest, env: Mapping[str, str]) -> ProviderPod:
        """Rent a pod. The request's stamps are put into its environment, whatever `env` says.

        Raises:
            ProviderError: AMBIGUOUS when the pod may exist nevertheless; every other failure means that it does not.
        """
        values = {**env, OWNER: request.stamp.owner, NONCE: request.stamp.nonce}
        body = _formed(lambda: create_body(request, values).wire())
        reply = await self._requests.send(calls.CREATE_POD, "/pods", body=body, secrets=env.values())
        return _pod(calls.CREATE_POD, reply, None, stamp=request.stamp)

    async def patch_pod(self, pod: OwnedPod, change: PatchRequest, env: Mapping[str, str] | None) -> ProviderPod:
        """Change a pod in place. `env` (the whole environment, stamps included) is sent with `change.send_env` only."""
        values = dict(env or {}) if change.send_env else None
        if values is not None and pod.reason == "stamp" and not {OWNER, NONCE} <= values.keys():
            # The sent environment replaces the pod's: without its stamps the pod would be nobody's, and bill on.
            raise ProviderError(Failure.INVALID, f"the environment sent to pod {pod.id} must carry its stamps")
        body = _formed(lambda: patch_body(change, values).wire())
        path = f"/pods/{_segment(pod.id)}"
        reply = await self._requests.send(calls.PATCH_POD, path, body=body, secrets=(values or {}).values())
        return _pod(calls.PATCH_POD, reply, pod.id)

    async def delete_pod(self, pod: OwnedPod) -> None:
        """Ask for the end of a pod. Only a 204 returns, and even that is no proof; nor is NOT_FOUND."""
        await self._requests.send(calls.DELETE_POD, f"/pods/{_segment(pod.id)}")

    async def stop_pod(self, pod: OwnedPod) -> ProviderPod | None:
        """Ask for a stop. A persistent volume goes on billing."""
        return await self._act(calls.STOP_POD, pod, "stop")

    async def start_pod(self, pod: OwnedPod) -> ProviderPod | None:
        """Ask for a start on the pod's own host. HOST_FULL when its GPUs are taken."""
        return await self._act(calls.START_POD, pod, "start")

    async def gpu_offers(self) -> tuple[GpuOffer, ...]:
        """The GPU catalog, whole."""
        return _each(offer_of, await read_pages(self._requests, calls.GPU_OFFERS, "/catalog/gpus", "gpus"))

    async def network_volumes(self) -> tuple[NetworkVolume, ...]:
        """Every network volume of the account."""
        path = "/network-volumes"
        return _each(volume_of, await read_pages(self._requests, calls.NETWORK_VOLUMES, path, "networkVolumes"))

    async def network_volume(self, volume_id: str) -> NetworkVolume:
        """One network volume. NOT_FOUND: unknown to this key."""
        reply = await self._requests.send(calls.NETWORK_VOLUME, f"/network-volumes/{_segment(volume_id)}")
        return _each(volume_of, [reply.document])[0]

    async def system_log(self, pod_id: str, lines: int = 100) -> tuple[str, ...]:
        """The last lines of the host's log of the pod, oldest first, without anything shaped like a token.

        Takes at most 5 s once the answer begins. `lines` up to 5000.
        """
        query = {"source": "system", "tail": str(min(max(lines, 1), MOST_LOG_LINES))}
        path = f"/pods/{_segment(pod_id)}/logs"
        async with self._requests.exchange(calls.SYSTEM_LOG, path, query=query, accept="text/event-stream") as response:
            found = await read_log(response, lines=lines, quiet=LOG_QUIET_SECONDS, most=LOG_SECONDS)
        return tuple(redact(line) for line in found)

    async def account_limits(self) -> Mapping[str, Any]:
        """The account's hourly spend cap and worker limits as the vendor shows them; its inner names may change."""
        reply = await self._requests.send(calls.ACCOUNT_LIMITS, "/account/limits")
        limits: Mapping[str, Any] = reply.document
        return limits

    async def balance(self) -> Balance:
        """What is left. FORBIDDEN without the scope `billing:read`, NOT_FOUND before the route existed."""
        reply = await self._requests.send(calls.BALANCE, "/billing/balance")
        amount, mode = reply.document.get("balanceAmount"), reply.document.get("billingMode")
        if isinstance(amount, bool) or not isinstance(amount, int | Decimal):
            raise malformed(calls.BALANCE.kind, reply.status, reply.headers, "the balance is no number")
        return Balance(Decimal(amount), mode if isinstance(mode, str) else "")

    async def ssh_keys(self) -> tuple[str, ...]:
        """The account's registered public keys, one line each."""
        reply = await self._requests.send(calls.SSH_KEYS, "/account/ssh-keys")
        keys = reply.document.get("keys")
        if not isinstance(keys, list):
            raise malformed(calls.SSH_KEYS.kind, reply.status, reply.headers, "there is no list of keys")
        return tuple(key for key in keys if isinstance(key, str))

    async def _act(self, call: calls.Call, pod: OwnedPod, action: str) -> ProviderPod:
        body = ActionBody(action=action).wire()
        reply = await self._requests.send(call, f"/pods/{_segment(pod.id)}/action", body=body)
        return _pod(call, reply, pod.id)


def _pod(call: calls.Call, reply: Reply, wanted: str | None, *, stamp: Stamp | None = None) -> ProviderPod:
    try:
        pod = pod_of(reply.document, stamp=stamp)
    except Malformed as problem:
        raise malformed(call.kind, reply.status, reply.headers, str(problem)) from None
    if wanted is not None and pod.id != wanted:
        raise malformed(call.kind, reply.status, reply.headers, "the answer is about another pod")
    return pod


def _each(convert: Callable[[object], _Item], items: list[Any]) -> tuple[_Item, ...]:
    try:
        return tuple(convert(item) for item in items)
    except Malformed as problem:
        raise IncompleteAnswer(str(problem)) from None


def _formed(build: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return build()
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False, include_context=False)
        what = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in problems)
        raise ProviderError(Failure.INVALID, f"the request cannot be formed: {what}") from None


def _segment(text: str) -> str:
    return quote(text, safe="")
