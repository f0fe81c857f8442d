"""A real one-node Kubernetes in namespaces of its own, with everything that a cluster has.

`enter` prepares what needs the network (programs, images) and goes into the namespaces; the rest runs there.
"""
