"""Carries out one act. The intent is in status before; right before the call the Lease is asked; the answer is data."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.policies import TokenFrom
from gpupod_operator.api.sweepcell import SweepCellSpec
from gpupod_operator.core.gpupod.agent import tried_once_more
from gpupod_operator.core.gpupod.settle import Settled, settle_call, settle_visit
from gpupod_operator.core.plan import (
    Action,
    CaptureLogs,
    CreatePod,
    DeletePod,
    DrainWorkload,
    InstallAgent,
    LaunchWorkload,
    Outcome,
    PatchPod,
    StartPod,
    StopPod,
)
from gpupod_operator.core.provider import Answer, CreateRequest, Failure
from gpupod_operator.ports import ApiForbidden, ApiNotFound, ApiUnavailable, LaunchRefused, ProviderError, ShellError
from gpupod_operator.runpod.accounts import Account
from gpupod_operator.runtime.captured import save_logs
from gpupod_operator.runtime.secret_values import SecretProblem
from gpupod_operator.runtime.slot import Slot
from gpupod_operator.shell.redact import without

if TYPE_CHECKING:
    from gpupod_operator.runtime.world import World

log = logging.getLogger("gpupod_operator")

CAPTURE_SECONDS = 60
"""Saving logs may take this long and may fail; the pod bills meanwhile."""

NOT_SENT = (SecretProblem, ApiUnavailable, ApiForbidden, ApiNotFound)


class NotLeading(Exception):
    """The Lease ran out between the decision and the call: nothing was sent, the process ends."""


class Executor:
    """For one act of one object."""

    def __init__(self, world: World, slot: Slot, raw: dict[str, Any], spec: GpuPodSpec) -> None:
        self._world = world
        self._slot = slot
        self._raw = raw
        self._spec = spec
        self._namespace: str = raw["metadata"]["namespace"]

    async def perform(self, action: Action, status: GpuPodStatus) -> Settled:
        """Do it, and fold the answer into the status. Raises NotLeading and nothing else of its own."""
        if isinstance(action, (CreatePod, DeletePod, StopPod, StartPod, PatchPod)):
            account = self._world.account_of_slot(self._slot)
            answer = await self._call(action, account)
            if answer.pod is not None:
                self._slot.recent_pod = answer.pod
            if isinstance(action, DeletePod) and action.ghost:
                self._slot.ghost_deletes[action.pod.id] = self._world.clock.now()
            if isinstance(action, (StartPod, PatchPod, DeletePod)):
                self._slot.reading = None
            identity = account.identity if account is not None else None
            return settle_call(status, action, answer, self._world.clock.now(), self._world.policy, identity)
        outcome = await self._visit(action)
        self._slot.reading = None
        if isinstance(action, InstallAgent):
            self._slot.install = tried_once_more(self._slot.install, action, outcome, self._world.clock.now())
        return settle_visit(status, action, outcome, self._world.clock.now())

    async def _call(self, action: Action, account: Account | None) -> Answer:
        if account is None:
            return Answer(Failure.UNAVAILABLE, "no account is open")
        try:
            if isinstance(action, CreatePod):
                env = await self._environment(action.request)
                self._check_lease()
                return Answer(pod=await account.provider.create_pod(action.request, env))
            self._check_lease()
            if isinstance(action, DeletePod):
                account.observer.expect_gone(action.pod.id)
                await account.provider.delete_pod(action.pod)
                return Answer()
            if isinstance(action, StopPod):
                return Answer(pod=await account.provider.stop_pod(action.pod))
            if isinstance(action, StartPod):
                return Answer(pod=await account.provider.start_pod(action.pod))
            assert isinstance(action, PatchPod)
            return Answer(pod=await account.provider.patch_pod(action.pod, action.change, None))
        except NOT_SENT as error:
            # nothing was sent: the inputs of the call could not be read
            return Answer(Failure.UNAVAILABLE, str(error))
        except ProviderError as error:
            return Answer(error.failure, error.detail, error.errors, error.request_id, error.retry_after)

    async def _environment(self, request: CreateRequest) -> dict[str, str]:
        """The user's environment with the public key and, last so that nothing overrides them, the two stamps."""
        credentials = self._world.credentials
        env = {
            "PUBLIC_KEY": (await credentials.ssh_key(self._namespace, self._slot.uid, self._spec, new_pod=True)).public
        }
        env |= await credentials.environment(self._namespace, self._spec)
        return env | {"GPUPOD_OWNER": request.stamp.owner, "GPUPOD_NONCE": request.stamp.nonce}

    async def _visit(self, action: Action) -> Outcome:
        now = self._world.clock.now()
        try:
            pair = await self._world.credentials.ssh_key(self._namespace, self._slot.uid, self._spec)
            self._check_lease()
            if isinstance(action, InstallAgent):
                await self._install(action, pair.private)
            elif isinstance(action, LaunchWorkload):
                await self._launch(action, pair.private)
            elif isinstance(action, DrainWorkload):
                await self._world.shell.drain(action.target, pair.private, attempt=action.attempt)
            else:
                assert isinstance(action, CaptureLogs)
                return await self._capture(action, pair.private)
        except LaunchRefused as error:
            return Outcome(False, str(error), at=now)
        except (ShellError, *NOT_SENT) as error:
            return Outcome(None, str(error), at=now)
        return Outcome(True, at=now)

    async def _install(self, action: InstallAgent, key: str) -> None:
        tokens: dict[str, str] = {}
        for raw in self._world.store.cells_of(self._slot.key):
            spec = SweepCellSpec.model_validate(raw["spec"])
            if spec.upload.token_from is not TokenFrom.SECRET:
                continue
            try:
                token = await self._world.credentials.hub_token(self._namespace, raw["metadata"]["uid"], spec)
            except SecretProblem as problem:
                # its own condition says so, and the agent that it lacks its token; the other cells need theirs
                log.info("installed without a token: %s", problem, extra={"cell": raw["metadata"]["name"]})
                continue
            tokens[raw["metadata"]["uid"]] = token
        await self._world.shell.write_cells(action.target, key, action.cells)
        await self._world.shell.install_agent(
            action.target,
            key,
            settings={
                "hubEndpoint": self._world.settings.hub_endpoint,
                "tokens": tokens,
                "attempt": action.attempt,
                "podId": action.target.pod_id,
                "runpodEndpoint": self._world.settings.runpod_api,
            },
        )

    async def _launch(self, action: LaunchWorkload, key: str) -> None:
        await self._world.shell.launch(
            action.target,
            key,
            attempt=action.attempt,
            launch_id=action.launch_id,
            pod_started_at=action.pod_started_at,
            command=action.command,
            check=action.check,
            log_file=action.log_file,
        )

    async def _capture(self, action: CaptureLogs, key: str) -> Outcome:
        """The pod's own logs where it can be reached, and the host's log of it; either may fail."""
        parts: dict[str, str] = {}
        account = self._world.account_of_slot(self._slot)
        try:
            async with asyncio.timeout(CAPTURE_SECONDS):
                if action.target is not None:
                    try:
                        parts["pod.log"] = await self._world.shell.capture_logs(
                            action.target, key, attempt=action.attempt
                        )
                    except ShellError as error:
                        parts["pod.log"] = f"the pod could not be visited: {error}"
                if account is not None:
                    parts["system.log"] = "\n".join(await account.provider.system_log(action.pod_id))
        except (TimeoutError, ProviderError) as error:
            parts.setdefault("system.log", f"not available: {error}")
        parts = {key: without(text, await self._known_secrets()) for key, text in parts.items()}
        name = await save_logs(self._world.cluster, self._raw, action, parts, self._world.policy.image_keep)
        return Outcome(True, data={"configMap": name} if name else {})

    async def _known_secrets(self) -> list[str]:
        """Values that a log of this pod might show, as far as they can be read now."""
        found: list[str] = []
        references = [e for e in self._spec.container.env if e.value_from is not None]
        try:
            values = await self._world.credentials.environment(self._namespace, self._spec) if references else {}
            found += [values[e.name] for e in references]
        except NOT_SENT as error:
            log.info("logs are saved without knowing every secret value: %s", error)
        return found

    def _check_lease(self) -> None:
        if not self._world.may_act():
            raise NotLeading
