"""The API server's audit log: who wrote what, counted there and not by the writer."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

WRITES = {"create", "update", "patch", "delete", "deletecollection"}


@dataclass(frozen=True, slots=True)
class Request:
    """One answered request of the audited ServiceAccount."""

    at: datetime
    verb: str
    resource: str
    name: str
    code: int

    @property
    def writes(self) -> bool:
        return self.verb in WRITES

    @property
    def renewal(self) -> bool:
        """The Lease, which is renewed whatever happens."""
        return self.resource == "leases"


class Audit:
    """Read in steps: `new()` gives what came since the last call."""

    def __init__(self, folder: Path, user: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._policy = folder / "audit-policy.yaml"
        self._log = folder / "audit.log"
        self._log.touch()
        self._user = user
        self._offset = 0
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived", "ResponseStarted"],
            "rules": [{"level": "Metadata", "users": [user]}, {"level": "None"}],
        }
        self._policy.write_text(yaml.safe_dump(policy))

    @property
    def apiserver_args(self) -> tuple[str, ...]:
        return (f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}", "--audit-log-maxsize=4096")

    def new(self) -> list[Request]:
        return list(self._read())

    def _read(self) -> Iterator[Request]:
        with self._log.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # being written
                self._offset += len(line)
                event = json.loads(line)
                if event["user"]["username"] == self._user:
                    yield _request(event)


def by_kind(requests: list[Request]) -> dict[str, int]:
    """`patch gpupods/status` and the like, the most frequent first."""
    counts = Counter(f"{r.verb} {r.resource}" + (f" -> {r.code}" if r.code >= 400 else "") for r in requests)
    return dict(counts.most_common())


def _request(event: dict[str, Any]) -> Request:
    what = event.get("objectRef") or {}
    resource = what.get("resource") or event.get("requestURI", "")
    if what.get("subresource"):
        resource += f"/{what['subresource']}"
    at = datetime.fromisoformat(event["requestReceivedTimestamp"])
    code = (event.get("responseStatus") or {}).get("code", 0)
    return Request(at, event["verb"], resource, what.get("name", ""), code)
