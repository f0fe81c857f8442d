"""A World of the runtime whose outside is in memory: a cluster, accounts with real observers, a clock that is set."""
