"""Secrets, and the copies that serve a pod after its Secret is gone or broken."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.sweepcell import SweepCellSpec
from gpupod_operator.ports import ApiConflict, ApiNotFound
from gpupod_operator.runtime.credentials import MISSING, Credentials, copy_name
from gpupod_operator.runtime.secret_values import SecretProblem
from gpupod_operator.runtime.settings import Settings
from gpupod_operator.runtime.views import digest_of
from gpupod_operator.shell.keys import generate_key_pair

GOOD, PUBLIC = generate_key_pair()
SPEC = GpuPodSpec.model_validate({"ssh": {"keySecretRef": {"name": "login"}}})
HOME = "gpupod-system"


class Secrets:
    """The Secrets of a cluster. An apply yields first, so that two callers can meet."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], dict[str, bytes]] = {}
        self.refuses = False

    async def read_secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        await asyncio.sleep(0)
        if (namespace, name) not in self.held:
            raise ApiNotFound(name)
        return dict(self.held[(namespace, name)])

    async def apply_secret(self, namespace: str, name: str, data: Mapping[str, bytes], *, labels: object) -> None:
        await asyncio.sleep(0)
        if self.refuses:
            raise ApiConflict(name)
        self.held[(namespace, name)] = dict(data)

    async def delete_secret(self, namespace: str, name: str) -> None:
        if self.held.pop((namespace, name), None) is None:
            raise ApiNotFound(name)


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


@pytest.fixture
def credentials(secrets: Secrets) -> Credentials:
    return Credentials(secrets, Settings(namespace=HOME))  # type: ignore[arg-type]


async def test_a_broken_key_does_not_overwrite_the_copy_that_opens_the_pod(secrets, credentials):
    secrets.held[("ml", "login")] = {"ssh-privatekey": GOOD.encode()}
    assert (await credentials.ssh_key("ml", "u1", SPEC)).public.split()[:2] == PUBLIC.split()[:2]
    secrets.held[("ml", "login")] = {"ssh-privatekey": b"-----BEGIN nothing"}
    assert (await credentials.ssh_key("ml", "u1", SPEC)).private.strip() == GOOD.strip()
    assert secrets.held[(HOME, copy_name("u1"))]["ssh-key"].strip() == GOOD.encode().strip()


@pytest.mark.parametrize(
    ("secret", "reason"),
    [
        (None, Reason.SECRET_NOT_FOUND),
        ({}, Reason.SECRET_KEY_MISSING),
        ({"ssh-privatekey": b"\xff\xfe"}, Reason.SECRET_INVALID),
    ],
)
async def test_a_new_pod_is_not_made_with_a_copy(secrets, credentials, secret, reason):
    secrets.held[("ml", "login")] = {"ssh-privatekey": GOOD.encode()}
    await credentials.ssh_key("ml", "u1", SPEC)
    secrets.held.pop(("ml", "login"))
    if secret is not None:
        secrets.held[("ml", "login")] = secret
    with pytest.raises(SecretProblem) as problem:
        await credentials.ssh_key("ml", "u1", SPEC, new_pod=True)
    assert problem.value.reason is reason
    assert (await credentials.ssh_key("ml", "u1", SPEC)).private.strip() == GOOD.strip()


async def test_a_copy_that_cannot_be_written_holds_nothing_up(secrets, credentials):
    secrets.held[("ml", "login")] = {"ssh-privatekey": GOOD.encode()}
    secrets.refuses = True
    assert (await credentials.ssh_key("ml", "u1", SPEC)).private.strip() == GOOD.strip()
    secrets.refuses = False
    await credentials.ssh_key("ml", "u1", SPEC)
    assert (HOME, copy_name("u1")) in secrets.held, "tried again by the next reading"


async def test_two_objects_of_a_new_namespace_get_the_one_pair_that_is_kept(secrets, credentials):
    plain = GpuPodSpec.model_validate({})
    one, two = await asyncio.gather(credentials.ssh_key("ml", "u1", plain), credentials.ssh_key("ml", "u2", plain))
    assert one == two
    assert secrets.held[(HOME, "ssh-ml")]["ssh-privatekey"].decode() == one.private


async def test_forgetting_takes_the_copies_of_this_object_only(secrets, credentials):
    secrets.held[("ml", "login")] = {"ssh-privatekey": GOOD.encode()}
    await credentials.ssh_key("ml", "u1", SPEC)
    await credentials.ssh_key("ml", "u2", SPEC)
    await credentials.forget("u1")
    await credentials.forget("u1")
    assert (HOME, copy_name("u1")) not in secrets.held
    assert (HOME, copy_name("u2")) in secrets.held


CELL = SweepCellSpec.model_validate(
    {
        "podRef": {"name": "p"},
        "sweep": "s",
        "source": {
            "root": "/workspace/c",
            "doneFile": "DONE",
            "artifacts": [{"name": "r", "path": "/workspace/c", "include": ["*.json"], "minFiles": 1}],
        },
        "destination": {"repo": "me/r", "path": "c", "tokenSecretRef": {"name": "hub", "key": "token"}},
    }
)


async def test_the_print_of_a_token_follows_its_secret(secrets, credentials):
    assert credentials.token_print("c1") is None
    with pytest.raises(SecretProblem):
        await credentials.hub_token("ml", "c1", CELL)
    assert credentials.token_print("c1") == MISSING
    prints = set()
    for token in (b"hf_one", b"hf_two", b"hf_two\n"):
        secrets.held[("ml", "hub")] = {"token": token}
        await credentials.hub_token("ml", "c1", CELL)
        prints.add(credentials.token_print("c1"))
        assert token.strip().decode() not in str(prints)
    assert len(prints) == 2


@pytest.mark.parametrize("value", [b"hf_a\nhf_b", b"hf a", b"\xff", b"x" * 5000])
async def test_what_is_no_token_is_refused_without_being_shown(secrets, credentials, value):
    secrets.held[("ml", "hub")] = {"token": value}
    with pytest.raises(SecretProblem) as problem:
        await credentials.hub_token("ml", "c1", CELL)
    assert problem.value.reason is Reason.SECRET_INVALID
    assert "hf" not in str(problem.value)


def test_the_agents_input_is_known_once_every_token_was_read(credentials):
    raw = {"metadata": {"uid": "c1", "generation": 1}, "spec": {}}
    own = {"metadata": {"uid": "c2", "generation": 1}, "spec": {"upload": {"tokenFrom": "PodEnv"}}}
    prints = {"c1": "a"}
    assert digest_of([raw], {}.get) is None
    assert digest_of([own], {}.get) is not None
    before = digest_of([raw, own], prints.get)
    assert before == digest_of([own, raw], prints.get)
    assert before != digest_of([raw, own], {"c1": "b"}.get)
    edited = {"metadata": {"uid": "c1", "generation": 2}, "spec": {}}
    assert before != digest_of([edited, own], prints.get)
    deleted = {"metadata": {"uid": "c1", "generation": 2, "deletionTimestamp": "2026-12-01T00:00:00Z"}, "spec": {}}
    assert before == digest_of([deleted, own], prints.get), "to be deleted is no new order"
