"""`/v2/account`: SSH keys, and in the younger contract identity, limits and balance."""

from __future__ import annotations

from aiohttp import web

from gpupod_rehearsal.runpod import contract
from gpupod_rehearsal.runpod.http.context import account, body_of, demand, json_response, simulator


def routes() -> list[web.RouteDef]:
    """What both ages of the contract have."""
    return [
        web.get("/v2/account/ssh-keys", get_ssh_keys, allow_head=False),
        web.put("/v2/account/ssh-keys", put_ssh_keys),
    ]


def november_routes() -> list[web.RouteDef]:
    """What came after August 2026."""
    return [
        web.get("/v2/account", get_account, allow_head=False),
        web.get("/v2/account/limits", get_limits, allow_head=False),
        web.get("/v2/billing/balance", get_balance, allow_head=False),
    ]


async def get_ssh_keys(request: web.Request) -> web.Response:
    """The registered public keys."""
    demand(request, "account:read")
    return json_response({"keys": account(request).ssh_keys})


async def put_ssh_keys(request: web.Request) -> web.Response:
    """Replace all registered public keys."""
    demand(request, "account:write")
    body = await body_of(request, contract.SSH_KEYS)
    account(request).ssh_keys = list(body["keys"])
    return json_response({"keys": account(request).ssh_keys})


async def get_account(request: web.Request) -> web.Response:
    """Who this key acts for: the user or the team."""
    demand(request, "account:read")
    return json_response({"id": account(request).id, "email": account(request).email})


async def get_limits(request: web.Request) -> web.Response:
    """The spend cap in USD an hour. The inner field names were never seen live and are a guess."""
    demand(request, "account:read")
    cloud, owner = simulator(request).cloud, account(request)
    return json_response(
        {
            "spendRate": {
                "limit": float(owner.spend_limit),
                "current": float(cloud.ledger.running_compute(owner.id)),
            },
            "serverlessWorkers": {"limit": 10, "current": 0},
        }
    )


async def get_balance(request: web.Request) -> web.Response:
    """The balance in USD."""
    demand(request, "billing:read")
    owner = account(request)
    return json_response(
        {"balanceAmount": float(simulator(request).cloud.balance(owner)), "billingMode": owner.billing_mode}
    )
