"""Names of the API group: what the API server, the finalizers and the field managers are called."""

from __future__ import annotations

from typing import Final

GROUP: Final = "gpupod.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

GPUPOD_KIND: Final = "GpuPod"
GPUPODS: Final = "gpupods"
SWEEPCELL_KIND: Final = "SweepCell"
SWEEPCELLS: Final = "sweepcells"

GPUPOD_FINALIZER: Final = "gpupod.dev/teardown"
CELL_FINALIZER: Final = "gpupod.dev/cell"
FIELD_MANAGER: Final = "gpupod-operator"

OWNER_ENV: Final = "GPUPOD_OWNER"
"""Pod environment variable that names the object: `<instance>/<namespace>/<name>/<uid>`."""
NONCE_ENV: Final = "GPUPOD_NONCE"
"""Pod environment variable with the attempt's nonce."""
PUBLIC_KEY_ENV: Final = "PUBLIC_KEY"
"""Pod environment variable through which RunPod images take the SSH public key at boot."""
