"""A pure world for the decisions of a GpuPod: a scripted provider, hosts, a Hub, and the loop without I/O."""
