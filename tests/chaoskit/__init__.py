"""One operator process that can be killed at any await, in a world on virtual time: the vendor is the simulator."""
