"""The shipped CRDs as data for tests: their schemas, specimens with every field, samples for every pattern and rule."""
