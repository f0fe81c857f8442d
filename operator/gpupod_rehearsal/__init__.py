"""The rehearsal world: a real control plane and real SSH servers, with simulated vendors in place of RunPod and the Hub."""
