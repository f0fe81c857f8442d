"""Secrets: resolved by exact name in the object's own namespace, with a copy for as long as a pod may live.

The copies (one Secret per object uid in the operator's namespace) carry a teardown through the deletion of a namespace
that takes its Secrets first. Values are handed to the one call that needs them and kept nowhere else.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping

from gpupod_operator.api.gpupod_spec import GpuPodSpec, SecretKeyRef
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.sweepcell import SweepCellSpec
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable, Cluster
from gpupod_operator.runpod.keys import KeySource
from gpupod_operator.runtime.secret_values import KeyPair, SecretProblem, one_line, public_line
from gpupod_operator.runtime.settings import Settings
from gpupod_operator.shell.keys import generate_key_pair

log = logging.getLogger("gpupod_operator")

LABELS = {"app.kubernetes.io/managed-by": "gpupod-operator"}
MISSING = "missing"
RUNPOD, SSH = "runpod-key", "ssh-key"


class Credentials:
    """Everything secret that a pass needs, by object."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._copied: dict[tuple[str, str], bytes] = {}
        self._pairs: dict[str, KeyPair] = {}
        self._file: KeySource | None = None
        self._prints: dict[str, str] = {}
        self._making: dict[str, asyncio.Lock] = {}

    async def runpod_key(self, namespace: str, uid: str, spec: GpuPodSpec) -> KeySource:
        """The object's key, or the operator's own. Raises SecretProblem."""
        if spec.account is None:
            return self._own_key()
        value = await self._value(namespace, spec.account.secret_ref, "RunPod key", uid, RUNPOD)
        return KeySource.from_bytes(value)

    async def ssh_key(self, namespace: str, uid: str, spec: GpuPodSpec, *, new_pod: bool = False) -> KeyPair:
        """The object's key pair, or the namespace's own pair that the operator makes on first use.

        The copy serves a pod that was made with it, never a new one. Raises SecretProblem.
        """
        ref = spec.ssh.key_secret_ref
        if ref is None:
            return await self._namespace_pair(namespace)
        found = SecretKeyRef(name=ref.name, key="ssh-privatekey")
        value = await self._value(
            namespace, found, "SSH key", uid, SSH, usable=lambda v: public_line(v, ref.name), from_copy=not new_pod
        )
        return KeyPair(value.decode(), public_line(value, ref.name))

    async def environment(self, namespace: str, spec: GpuPodSpec) -> dict[str, str]:
        """Container environment with every reference resolved. Raises SecretProblem."""
        env: dict[str, str] = {}
        for entry in spec.container.env:
            if entry.value is not None:
                env[entry.name] = entry.value
            elif entry.runpod_secret is not None:
                env[entry.name] = "{{ RUNPOD_SECRET_" + entry.runpod_secret + " }}"
            elif entry.value_from is not None:
                ref = entry.value_from.secret_key_ref
                env[entry.name] = (await self._value(namespace, ref, f"variable {entry.name}")).decode()
        return env

    async def hub_token(self, namespace: str, uid: str, spec: SweepCellSpec) -> str:
        """The cell's Hub token. Raises SecretProblem."""
        ref = spec.destination.token_secret_ref
        # hashed, because two names of 253 characters do not fit into one key of a Secret
        slot = "hub-" + hashlib.sha256(f"{ref.name}/{ref.key}".encode()).hexdigest()[:16]
        try:
            value = await self._value(namespace, ref, "Hub token", uid, slot, usable=lambda v: one_line(v, ref))
        except SecretProblem:
            self._prints[uid] = MISSING
            raise
        self._prints[uid] = hashlib.sha256(value).hexdigest()[:16]
        return value.decode()

    def token_print(self, uid: str) -> str | None:
        """A hash of the cell's token as last read, `MISSING`, or None when this process never read it."""
        return self._prints.get(uid)

    async def forget(self, uid: str) -> None:
        """The object is gone: so are its copies."""
        self._copied = {k: v for k, v in self._copied.items() if k[0] != uid}
        self._prints.pop(uid, None)
        try:
            await self._cluster.delete_secret(self._settings.namespace, copy_name(uid))
        except ApiNotFound:
            return

    def _own_key(self) -> KeySource:
        path = self._settings.runpod_key_file
        if path is None or not path.exists():
            raise SecretProblem(
                Reason.SECRET_NOT_FOUND,
                f"the operator has no RunPod key of its own ({path} is missing): set spec.account.secretRef, or "
                "mount one",
            )
        if self._file is None:
            self._file = KeySource.from_file(path)
        return self._file

    async def _value(
        self,
        namespace: str,
        ref: SecretKeyRef,
        what: str,
        uid: str | None = None,
        slot: str | None = None,
        *,
        usable: Callable[[bytes], object] = lambda _: None,
        from_copy: bool = True,
    ) -> bytes:
        """The value. A copy stands in for one that is missing or unusable; it is refreshed only by a usable one."""
        try:
            value = await self._read(namespace, ref, what)
            usable(value)
        except SecretProblem:
            copied = await self._copy(uid, slot) if from_copy else None
            if copied is None:
                raise
            return copied
        if uid is not None and slot is not None:
            await self._keep(uid, slot, value)
        return value

    async def _read(self, namespace: str, ref: SecretKeyRef, what: str) -> bytes:
        try:
            secret = await self._cluster.read_secret(namespace, ref.name)
        except (ApiNotFound, ApiForbidden) as error:
            raise SecretProblem(
                Reason.SECRET_NOT_FOUND,
                f"Secret {ref.name} ({what}) cannot be read in namespace {namespace}: create it there",
            ) from error
        if ref.key not in secret or not secret[ref.key].strip():
            raise SecretProblem(
                Reason.SECRET_KEY_MISSING, f"Secret {ref.name} ({what}) has no value under the key {ref.key!r}: add it"
            )
        return secret[ref.key].strip()

    async def _keep(self, uid: str, slot: str, value: bytes) -> None:
        """Refresh the copy when the value changed; a copy that cannot be written holds nothing up."""
        if self._copied.get((uid, slot)) == value:
            return
        try:
            data = await self._copies(uid)
            if data.get(slot) != value:
                await self._cluster.apply_secret(
                    self._settings.namespace, copy_name(uid), {**data, slot: value}, labels=LABELS
                )
        except (ApiConflict, ApiForbidden, ApiInvalid, ApiUnavailable) as error:
            log.warning("the copy of a key is not written yet: %s", error, extra={"uid": uid})
            return
        self._copied[(uid, slot)] = value

    async def _copy(self, uid: str | None, slot: str | None) -> bytes | None:
        if uid is None or slot is None:
            return None
        return (await self._copies(uid)).get(slot)

    async def _copies(self, uid: str) -> Mapping[str, bytes]:
        try:
            return await self._cluster.read_secret(self._settings.namespace, copy_name(uid))
        except ApiNotFound:
            return {}

    async def _namespace_pair(self, namespace: str) -> KeyPair:
        """One pair per namespace, kept in the operator's namespace; never replaced once made."""
        known = self._pairs.get(namespace)
        if known is not None:
            return known
        # one at a time: two objects of a new namespace must not each make a pair and keep the one that lost
        async with self._making.setdefault(namespace, asyncio.Lock()):
            known = self._pairs.get(namespace)
            return known if known is not None else await self._read_or_make(namespace)

    async def _read_or_make(self, namespace: str) -> KeyPair:
        name = f"ssh-{namespace}"[:253]
        try:
            secret = await self._cluster.read_secret(self._settings.namespace, name)
            pair = KeyPair(secret["ssh-privatekey"].decode(), secret["ssh-publickey"].decode().strip())
        except ApiNotFound:
            private, public = generate_key_pair()
            pair = KeyPair(private, public)
            await self._cluster.apply_secret(
                self._settings.namespace,
                name,
                {"ssh-privatekey": private.encode(), "ssh-publickey": public.encode()},
                labels=LABELS,
            )
        self._pairs[namespace] = pair
        return pair


def copy_name(uid: str) -> str:
    """Name of the Secret with an object's copies."""
    return f"keys-{uid}"
