"""The Helm chart: helm itself from its Go module, and the page of its values."""
