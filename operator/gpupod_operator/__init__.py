"""gpupod-operator: rents GPU pods for experiment sweeps, keeps them reachable, loses no work and leaks no money."""

__version__ = "0.1.0"
