"""Pure text: pods.conf, ssh_config, known_hosts and the MCP environment, from committed GpuPod objects."""
