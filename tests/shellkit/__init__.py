"""What the tests of the SSH shell share: a real sshd on loopback, and servers that misbehave."""
