"""The operations of chaoskit on a real API server, with an operator that kills itself by signal at each point."""
