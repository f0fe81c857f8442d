"""The Hugging Face Hub as the operator sees it: fresh, complete, typed reads. The agent on the pod commits."""

from gpupod_operator.hub.reader import HubReader
from gpupod_operator.hub.requests import hub_session
from gpupod_operator.hub.throttling import commit_limit

__all__ = ["HubReader", "commit_limit", "hub_session"]
