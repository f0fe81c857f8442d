"""Who asks, and what they may see and change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpupod_rehearsal.hub import refusals

Role = Literal["read", "write"]


@dataclass(frozen=True)
class HubToken:
    """An access token of `user`. A `read` token never writes, whatever the user may do. The secret is not in repr."""

    user: str
    role: Role = "write"
    secret: str = field(default="", repr=False)


class Accounts:
    """Users by token, and organisations with the role of each member."""

    def __init__(self, tokens: Iterable[HubToken], orgs: Mapping[str, Mapping[str, Role]] | None = None) -> None:
        self._by_secret = {token.secret: token for token in tokens}
        self._orgs = {org: dict(members) for org, members in (orgs or {}).items()}
        if "" in self._by_secret:
            raise ValueError("a Hub token needs a secret")

    def authenticate(self, authorization: str | None) -> HubToken | None:
        """The token behind an `Authorization` header; None without one.

        Raises:
            HubRefusedError: 401, the header is malformed or the token unknown.
        """
        if authorization is None:
            return None
        scheme, _, secret = authorization.partition(" ")
        token = self._by_secret.get(secret.strip())
        if scheme.lower() != "bearer" or token is None:
            raise refusals.invalid_token()
        return token

    def revoke(self, user: str) -> None:
        """Forget every token of `user`: the next request with one of them is answered 401."""
        self._by_secret = {secret: token for secret, token in self._by_secret.items() if token.user != user}

    def can_read(self, token: HubToken | None, namespace: str, *, private: bool) -> bool:
        return not private or (token is not None and self._role(token.user, namespace) is not None)

    def can_write(self, token: HubToken | None, namespace: str) -> bool:
        return token is not None and token.role == "write" and self._role(token.user, namespace) == "write"

    def whoami(self, token: HubToken) -> dict[str, Any]:
        """The body of `/api/whoami-v2`."""
        return {
            "type": "user",
            "name": token.user,
            "fullname": token.user,
            "isPro": False,
            "orgs": [
                {"type": "org", "name": org, "fullname": org, "roleInOrg": members[token.user]}
                for org, members in sorted(self._orgs.items())
                if token.user in members
            ],
            "auth": {
                "type": "access_token",
                "accessToken": {"displayName": token.user, "role": token.role},
            },
        }

    def _role(self, user: str, namespace: str) -> Role | None:
        if user == namespace:
            return "write"
        return self._orgs.get(namespace, {}).get(user)
