"""The HTTP face of the simulated vendor: REST v2, the read part of GraphQL, retired v1, and `/_sim`."""
