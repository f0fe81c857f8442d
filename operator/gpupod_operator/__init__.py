"""Rents RunPod GPU pods for experiment sweeps, keeps them reachable and their results safe."""
