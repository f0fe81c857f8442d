"""Who is behind a key, and what the keys of one account share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpupod_operator.core.provider import Failure, InventoryState
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod import Accounts, KeySource
from gpupod_operator.runpod.accounts import REFUSED_FOR, UNVERIFIED_FOR

FIRST, SECOND = KeySource.from_bytes(b"rpa_FIRSTKEY12345"), KeySource.from_bytes(b"rpa_SECONDKEY6789")


@pytest.fixture
async def accounts(desk, clock) -> AsyncIterator[Accounts]:
    accounts = Accounts(clock, base_url=desk.url, observe_every=0.01)
    yield accounts
    await accounts.close()


def bearers(desk) -> list[str]:
    return [asked.headers["Authorization"].removeprefix("Bearer rpa_") for asked in desk.asked]


async def test_a_key_is_asked_about_once(desk, accounts: Accounts):
    desk.say({"id": "acct_1"})
    opened = await asyncio.gather(*(accounts.open(FIRST) for _ in range(50)))
    assert all(account is opened[0] for account in opened)
    assert (opened[0].identity.id, opened[0].identity.verified) == ("acct_1", True)
    assert len(desk.asked) == 1


async def test_two_keys_of_one_account_share_observer_and_governor(desk, accounts: Accounts):
    desk.say({"id": "acct_1"}).say({"id": "acct_1"})
    first, second = await accounts.open(FIRST), await accounts.open(SECOND)
    assert first.observer is second.observer
    assert first.governor is second.governor
    assert first.identity.key_fingerprint != second.identity.key_fingerprint
    assert accounts.known() == (first, second)


async def test_two_accounts_share_nothing(desk, accounts: Accounts):
    desk.say({"id": "acct_1"}).say({"id": "acct_2"})
    first, second = await accounts.open(FIRST), await accounts.open(SECOND)
    assert first.observer is not second.observer
    assert first.governor is not second.governor


async def test_each_provider_uses_its_own_key(desk, accounts: Accounts):
    desk.say({"id": "acct_1"}).say({"id": "acct_1"}).refuse(404, "x").refuse(404, "x")
    first, second = await accounts.open(FIRST), await accounts.open(SECOND)
    for account in (first, second):
        with pytest.raises(ProviderError):
            await account.provider.get_pod("p1")
    assert bearers(desk)[2:] == ["FIRSTKEY12345", "SECONDKEY6789"]


async def test_a_rotated_file_opens_as_its_new_key_and_the_old_provider_keeps_the_old_one(
    desk, accounts: Accounts, tmp_path: Path
):
    path = tmp_path / "key"
    path.write_text("rpa_FIRSTKEY12345\n")
    source = KeySource.from_file(path)
    desk.say({"id": "acct_1"}).say({"id": "acct_2"}).refuse(404, "x")
    before = await accounts.open(source)
    (tmp_path / "next").write_text("rpa_SECONDKEY6789\n")
    (tmp_path / "next").rename(path)
    after = await accounts.open(source)
    assert (before.identity.id, after.identity.id) == ("acct_1", "acct_2")
    with pytest.raises(ProviderError):
        await before.provider.get_pod("p1")
    assert bearers(desk)[-1] == "FIRSTKEY12345"


async def test_a_refused_key_is_refused_with_the_vendor_s_words_and_not_asked_about_at_every_pass(
    desk, accounts: Accounts
):
    desk.refuse(401, "invalid bearer token")
    for _ in range(5):
        with pytest.raises(ProviderError, match="invalid bearer token") as refused:
            await accounts.open(FIRST)
        assert refused.value.failure is Failure.UNAUTHORIZED
    assert len(desk.asked) == 1


async def test_a_refused_key_is_asked_about_again_later(desk, accounts: Accounts, clock):
    desk.refuse(401, "invalid bearer token").say({"id": "acct_1"})
    with pytest.raises(ProviderError):
        await accounts.open(FIRST)
    clock.step(REFUSED_FOR.total_seconds())
    assert (await accounts.open(FIRST)).identity.id == "acct_1"


async def test_an_unanswered_question_is_asked_again_at_once(desk, accounts: Accounts):
    desk.refuse(500, "x").say({"id": "acct_1"})
    with pytest.raises(ProviderError) as failed:
        await accounts.open(FIRST)
    assert failed.value.failure is Failure.UNAVAILABLE
    assert (await accounts.open(FIRST)).identity.id == "acct_1"


async def test_a_key_without_the_scope_stands_for_itself_until_it_gets_it(desk, accounts: Accounts, clock):
    desk.refuse(403, "access denied")
    account = await accounts.open(FIRST)
    assert (account.identity.id, account.identity.verified) == (FIRST.current().fingerprint, False)
    assert await accounts.open(FIRST) is account
    clock.step(UNVERIFIED_FOR.total_seconds())
    desk.refuse(502, "x")
    assert await accounts.open(FIRST) is account
    clock.step(UNVERIFIED_FOR.total_seconds())
    desk.say({"id": "acct_1"})
    assert (await accounts.open(FIRST)).identity.id == "acct_1"


async def test_the_observer_turns_to_another_key_of_the_account_when_one_is_revoked(desk, accounts: Accounts):
    desk.say({"id": "acct_1"}).say({"id": "acct_1"})
    account = await accounts.open(FIRST)
    await accounts.open(SECOND)
    desk.refuse(401, "revoked").say({"pods": []})
    assert (await account.observer.tick()).state is InventoryState.COMPLETE
    assert bearers(desk)[2:] == ["SECONDKEY6789", "FIRSTKEY12345"]
    desk.refuse(401, "revoked")
    with pytest.raises(ProviderError, match="revoked"):
        await accounts.open(SECOND)


async def test_without_a_good_key_nothing_is_known_and_the_last_key_is_tried_on(desk, accounts: Accounts):
    desk.say({"id": "acct_1"}).refuse(401, "revoked").say({"pods": []})
    account = await accounts.open(FIRST)
    inventory = await account.observer.tick()
    assert (inventory.state, inventory.reason) == (InventoryState.UNKNOWN, "Unauthorized")
    assert (await account.observer.fresh()).state is InventoryState.COMPLETE


async def test_no_call_is_made_for_what_is_no_key(desk, accounts: Accounts, tmp_path: Path):
    with pytest.raises(ProviderError, match="cannot be read"):
        await accounts.open(KeySource.from_file(tmp_path / "nowhere"))
    assert desk.asked == []


async def test_closing_ends_a_list_under_way(desk, accounts: Accounts):
    held = asyncio.Event()
    desk.say({"id": "acct_1"}).literal("{}", held=held)
    account = await accounts.open(FIRST)
    listing = asyncio.create_task(account.observer.tick())
    while len(desk.asked) < 2:
        await asyncio.sleep(0)
    await accounts.close()
    with pytest.raises(asyncio.CancelledError):
        await listing
    held.set()
