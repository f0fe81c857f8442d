"""`make bench`: what a fleet costs the operator, the API server and the provider's quota. A report, not a test."""
