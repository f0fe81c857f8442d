"""The production operator in the rehearsal world, for tests that assert the world."""
