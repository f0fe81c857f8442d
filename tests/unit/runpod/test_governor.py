"""The quota's gate, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from gpupod_operator.core.provider import Failure
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.calls import CallKind
from gpupod_operator.runpod.governor import MOST_IN_FLIGHT, MOST_IN_FLIGHT_RELEASING, Governor

pytestmark = pytest.mark.looptime
READ, CREATE, RELEASE = CallKind.READ, CallKind.CREATE, CallKind.RELEASE
POLICY = '"minute";q=60;w=60, "hour";q=3000;w=3600'


def told(minute: int, t: int = 30, hour: int = 2800) -> dict[str, str]:
    return {"RateLimit": f'"minute";r={minute};t={t}, "hour";r={hour};t=1800', "RateLimit-Policy": POLICY}


def now() -> float:
    return asyncio.get_running_loop().time()


async def governed(headers: dict[str, str], status: int = 200) -> Governor:
    """A governor that has seen one answer."""
    governor = Governor()
    await governor.admit(READ)
    governor.answered(status, headers)
    return governor


async def test_without_headers_nothing_waits():
    governor = await governed({})
    began = now()
    for _ in range(500):
        await governor.admit(READ)
        governor.answered(200, {})
    assert now() == began


async def test_a_spent_window_holds_calls_until_it_begins_anew():
    governor = await governed(told(0, t=12))
    began = now()
    await governor.admit(READ)
    assert now() - began == 12


async def test_the_reserved_share_is_for_stop_and_delete_alone():
    governor = await governed(told(12, t=15))  # a fifth of 60 is reserved
    began = now()
    await governor.admit(RELEASE)
    assert now() == began
    governor.answered(200, told(11, t=15))
    await governor.admit(CREATE)
    assert now() - began == 15


async def test_stop_and_delete_wait_when_nothing_at_all_is_left():
    governor = await governed(told(0, t=9))
    began = now()
    await governor.admit(RELEASE)
    assert now() - began == 9


async def test_at_least_three_calls_of_a_small_window_are_reserved():
    headers = {"RateLimit": '"minute";r=3;t=10', "RateLimit-Policy": '"minute";q=10;w=60'}
    governor = await governed(headers)
    began = now()
    await governor.admit(RELEASE)
    governor.answered(200, headers)
    assert now() == began
    await governor.admit(READ)
    assert now() - began == 10


async def test_a_tiny_window_is_not_all_reserve():
    governor = await governed({"RateLimit": '"minute";r=2;t=50', "RateLimit-Policy": '"minute";q=2;w=60'})
    began = now()
    await governor.admit(READ)
    assert now() == began


async def test_the_longest_of_the_spent_windows_counts():
    governor = await governed({"RateLimit": '"minute";r=0;t=5, "hour";r=0;t=19', "RateLimit-Policy": POLICY})
    began = now()
    await governor.admit(READ)
    assert now() - began == 19


async def test_after_a_429_even_a_delete_waits_as_told():
    governor = await governed({"Retry-After": "8", "RateLimit": '"minute";r=4;t=30'}, status=429)
    began = now()
    await governor.admit(RELEASE)
    assert now() - began == 8


async def test_a_wait_beyond_patience_is_refused_with_its_length_and_without_a_call():
    governor = await governed(told(30, hour=0))
    with pytest.raises(ProviderError) as refused:
        await governor.admit(READ)
    assert refused.value.failure is Failure.THROTTLED
    assert refused.value.retry_after == 1800
    assert refused.value.status is None


async def test_the_words_of_a_refusal_do_not_change_while_the_window_runs():
    governor = await governed(told(30, hour=0))
    details = set()
    for _ in range(3):
        with pytest.raises(ProviderError) as refused:
            await governor.admit(READ)
        details.add(refused.value.detail)
        await asyncio.sleep(5)
    assert len(details) == 1


async def test_calls_under_way_count_against_what_is_left():
    governor = await governed(told(15))  # 12 are reserved: three may go
    for _ in range(3):
        await governor.admit(READ)
    fourth = asyncio.create_task(governor.admit(READ))
    await asyncio.sleep(1)
    assert not fourth.done()
    governor.answered(200, told(14))
    governor.answered(200, told(50, t=58))  # the window began anew meanwhile
    await asyncio.sleep(1)
    assert fourth.done()


async def test_an_overtaken_answer_does_not_raise_the_count():
    governor = Governor()
    await governor.admit(READ)
    await governor.admit(READ)
    governor.answered(200, told(20, t=30))
    governor.answered(200, told(21, t=30))
    assert governor.left()["minute"] == 20


async def test_a_new_window_raises_the_count():
    governor = await governed(told(0, t=3))
    await governor.admit(READ)
    governor.answered(200, told(59, t=60))
    assert governor.left()["minute"] == 59


async def test_an_answer_of_a_proxy_does_not_lift_the_limit():
    governor = await governed(told(0, t=10))
    began = now()
    await governor.admit(READ)
    governor.answered(502, {})
    governor2 = await governed(told(0, t=10))
    await governor2.admit(RELEASE)
    governor2.answered(None, {})
    assert governor.left() == {"hour": 2800}
    assert now() - began == 20


async def test_only_so_many_calls_are_under_way_and_stop_and_delete_have_room_of_their_own():
    governor = Governor()
    admitted: list[CallKind] = []

    async def call(kind: CallKind) -> None:
        await governor.admit(kind)
        admitted.append(kind)

    tasks = [asyncio.create_task(call(READ)) for _ in range(100)]
    tasks += [asyncio.create_task(call(RELEASE)) for _ in range(100)]
    await asyncio.sleep(0.1)
    assert admitted.count(READ) == MOST_IN_FLIGHT
    assert len(admitted) == MOST_IN_FLIGHT_RELEASING
    for _ in range(MOST_IN_FLIGHT_RELEASING - MOST_IN_FLIGHT + 1):
        governor.answered(200, {})
    await asyncio.sleep(0.1)
    assert len(admitted) > MOST_IN_FLIGHT_RELEASING
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_callers_are_served_in_order():
    governor = await governed(told(0, t=10))
    order: list[int] = []

    async def call(number: int) -> None:
        await governor.admit(READ)
        order.append(number)
        governor.answered(200, told(40))

    await asyncio.gather(*(call(number) for number in range(10)))
    assert order == list(range(10))


async def test_a_cancelled_caller_leaves_its_place_to_the_next():
    governor = await governed(told(0, t=10))
    first = asyncio.create_task(governor.admit(READ))
    second = asyncio.create_task(governor.admit(READ))
    await asyncio.sleep(1)
    first.cancel()
    await second
    assert first.cancelled()
    governor.answered(200, told(50, t=60))
    assert governor.left()["minute"] == 50


async def test_an_injected_clock_and_sleep_are_the_only_time():
    at = [100.0]

    async def sleep(seconds: float) -> None:
        at[0] += seconds

    governor = Governor(monotonic=lambda: at[0], sleep=sleep)
    await governor.admit(READ)
    governor.answered(200, told(0, t=12))
    began = now()
    await governor.admit(READ)
    assert at[0] == 112.0
    assert now() == began
