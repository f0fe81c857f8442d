"""What the tests of the cell agent share: a pod's disk with real agent processes, and the simulated Hub."""
