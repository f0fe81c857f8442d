"""kopf's settings, as one pure function."""

from __future__ import annotations

import kopf

from gpupod_operator.api.names import GPUPOD_FINALIZER, GROUP
from gpupod_operator.handlers.storage import NullDiffBase


def kopf_settings() -> kopf.OperatorSettings:
    """Own finalizer and prefix, null diff base, paged lists, no log events, quick failure on a dead watch."""
    settings = kopf.OperatorSettings()
    settings.persistence.finalizer = GPUPOD_FINALIZER
    settings.persistence.diffbase_storage = NullDiffBase()
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP, v1=False)
    settings.posting.enabled = False
    settings.posting.reporting_component = "gpupod-operator"
    settings.watching.chunk_size = 500
    settings.scanning.disabled = True
    settings.peering.standalone = True
    return settings
