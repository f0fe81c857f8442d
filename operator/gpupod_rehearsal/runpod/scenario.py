"""Worlds as data: a YAML file that says which accounts, hosts, images, timings, quotas and faults a simulator has."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import yaml

from gpupod_rehearsal.runpod.catalog import Image
from gpupod_rehearsal.runpod.cloud import Blueprint
from gpupod_rehearsal.runpod.contract import Profile
from gpupod_rehearsal.runpod.world import Account, ApiKey, Host, Timings, default_accounts


class ScenarioError(ValueError):
    """The scenario file says something this simulator does not know; the message names it."""


@dataclass(slots=True)
class Scenario:
    """A parsed scenario file. `faults` are in the form that the book of faults loads."""

    blueprint: Blueprint = field(default_factory=Blueprint)
    profile: Profile = Profile.NOVEMBER
    quotas: dict[str, int] | None = None
    faults: list[Mapping[str, object]] = field(default_factory=list)


Made = TypeVar("Made")

_PARTS = ("accounts", "hosts", "images", "timings", "quotas", "faults", "seed", "billingFactor", "profile")


def read(path: Path) -> Scenario:
    """Parse a scenario file. Raises ScenarioError, OSError."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise ScenarioError(f"{path}: {error}") from error
    return parse(document)


def parse(document: Mapping[str, Any]) -> Scenario:
    """Build a scenario from its document; what is left out keeps its default. Raises ScenarioError."""
    unknown = sorted(set(document) - set(_PARTS))
    if unknown:
        raise ScenarioError(f"unknown part {', '.join(unknown)}; there are: {', '.join(_PARTS)}")
    plan = Blueprint()
    if "accounts" in document:
        plan.accounts = [_account(item) for item in document["accounts"]]
    if "hosts" in document:
        plan.hosts = [_made(Host, item) for item in document["hosts"]]
    for name, item in document.get("images", {}).items():
        plan.images[str(name)] = _made(Image, item)
    if "timings" in document:
        plan.timings = _timings(document["timings"])
    plan.seed = int(document.get("seed", plan.seed))
    plan.billing_factor = Decimal(str(document.get("billingFactor", plan.billing_factor)))
    quotas = document.get("quotas")
    return Scenario(
        plan,
        Profile(document.get("profile", Profile.NOVEMBER)),
        {str(name): int(quota) for name, quota in quotas.items()} if quotas is not None else None,
        list(document.get("faults", [])),
    )


def give_keys(plan: Blueprint, known: Mapping[str, str]) -> dict[str, str]:
    """Set the secret of every key by alias, from `known` or newly drawn, and return them all."""
    if not plan.accounts:
        plan.accounts = default_accounts()
    aliases = {key.alias: key for account in plan.accounts for key in account.keys}
    strange = sorted(set(known) - set(aliases))
    if strange:
        raise ScenarioError(f"no key has the alias {', '.join(strange)}; there are: {', '.join(aliases)}")
    for alias, key in aliases.items():
        key.secret = known.get(alias) or f"rpa_{secrets.token_hex(20)}"
    return {alias: key.secret for alias, key in aliases.items()}


def _account(document: Mapping[str, Any]) -> Account:
    known = {"id", "email", "balance", "billingMode", "spendLimit", "keys", "sshKeys"}
    if set(document) - known:
        raise ScenarioError(f"an account has no {', '.join(sorted(set(document) - known))}")
    keys = [ApiKey(str(key["alias"]), "", frozenset(key.get("scopes", ["*"]))) for key in document.get("keys", [])]
    return Account(
        str(document["id"]),
        document.get("email"),
        Decimal(str(document.get("balance", 500))),
        str(document.get("billingMode", "PREPAID")),
        Decimal(str(document.get("spendLimit", 80))),
        keys,
        list(document.get("sshKeys", [])),
    )


def _timings(document: Any) -> Timings:
    if document == "fast":
        return Timings.fast()
    return _made(Timings, document)


def _made(kind: type[Made], document: Mapping[str, Any]) -> Made:
    given = {_snake(str(name)): value for name, value in document.items()}
    names = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    if set(given) - names:
        strange = ", ".join(sorted(set(given) - names))
        raise ScenarioError(f"{kind.__name__} has no {strange}; it has: {', '.join(sorted(names))}")
    return kind(**given)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
