"""The rehearsal world: a real control plane and real SSH servers, and simulated vendors."""
