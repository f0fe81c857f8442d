"""The Kubernetes API as the operator writes it: status, ConfigMaps, Secrets, events and the Lease."""
