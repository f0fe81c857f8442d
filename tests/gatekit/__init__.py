"""Builders of cells, pods and questions that the tests of the gate and of the cells share."""
