# One command per habit. Everything runs from the locked .venv; nothing outside the checkout is changed
# but the cache of the control plane (~/.cache/gpupod).
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Twice the cores, because tests on a real API server mostly wait for it; each process starts one (about 320 MB).
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 4 ? 5 * n / 2 : 8)))
PYTEST := $(BIN)/python -m pytest
ARGS ?=
# The image's tests need a container engine and make a base image: not everybody's machine, so not in `make test`.
SELECT ?= not bench and not image and not soak and not e2e

.DEFAULT_GOAL := help
.PHONY: help venv demo controlplane test unit cluster chaos soak bench image-test e2e e2e-full generate lint fmt fmt-check types layers check lock clean

help:  ## list these commands
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(STAMP)  ## make .venv from the lock files

$(STAMP): requirements-dev.lock pyproject.toml hatch_build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say PYTHON=python3.12, for example")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the locked dependencies into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

demo: $(STAMP)  ## the whole path once, on real parts, for $0
	$(BIN)/gpupod-operator rehearse $(ARGS)

controlplane: $(STAMP)  # built once (about 5 minutes on two cores), before pytest takes the screen
	@$(BIN)/python -m gpupod_rehearsal.controlplane etcd kube-apiserver kube-controller-manager kubectl >/dev/null

# In the order of the folders, so that the long ones come first and the last minute is full of short ones.
test: controlplane  ## the whole suite, unit to cluster
	$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "$(SELECT)" $(ARGS)

unit: $(STAMP)  ## the tests that need no API server
	$(PYTEST) -m "not cluster and not chaos and not bench and not image" $(ARGS)

cluster: controlplane  ## the tests on a real API server
	$(PYTEST) -m "cluster and not chaos and not bench and not soak" $(ARGS)

chaos: controlplane  ## the tests that kill and cut off parts of the world
	$(PYTEST) -m "chaos and not soak" $(ARGS)

soak: controlplane  ## 20,000 random schedules of deaths and faults, and deaths by signal everywhere; two hours on two cores
	$(PYTEST) -m soak $(ARGS)
	GPUPOD_SCHEDULES=$(or $(SCHEDULES),20000) $(PYTEST) tests/chaos/test_schedules.py \
		tests/chaos/test_crash_points.py tests/chaos/test_cells.py tests/chaos/test_two_clusters.py -n $(WORKERS) $(ARGS)

bench: controlplane  ## measure, and write a report
	PYTHONPATH=tests $(BIN)/python -m bench $(ARGS)

image-test: controlplane  ## build the container image and try it; needs docker, or root with buildah and podman
	$(PYTEST) -m image $(ARGS)

e2e: controlplane  ## a real node runs the image: kubelet, containerd and the rest in namespaces of their own; needs root
	@cd tests && PYTHONPATH=. $(abspath $(BIN))/python -m nodekit.enter $(abspath $(BIN))/python -m pytest -n 0 -m e2e e2e $(ARGS)

e2e-full: controlplane  ## the same, and the Helm chart on that node, by helm itself (built once)
	@cd tests && PYTHONPATH=. GPUPOD_E2E_FULL=1 $(abspath $(BIN))/python -m nodekit.enter $(abspath $(BIN))/python -m pytest -n 0 -m e2e e2e $(ARGS)

lint: $(STAMP)  ## ruff
	$(BIN)/ruff check .

fmt: $(STAMP)  ## format, and fix what can be fixed
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

fmt-check: $(STAMP)  ## would `make fmt` change anything?
	$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy, strict
	$(BIN)/mypy

layers: $(STAMP)  ## who may import whom
	$(BIN)/lint-imports

check: lint fmt-check types layers  ## all of these

# --universal: one file for all supported Pythons. No index address gets into it.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-header --no-annotate

generate: $(STAMP)  ## renew what follows from the code: pages of docs/, the chart's CRDs
	$(BIN)/python -m gpupod_operator.cli.docs docs
	cp crds/*.yaml manifests/helm/gpupod-operator/files/crds/
	PYTHONPATH=tests $(BIN)/python -m helmkit.page

lock: $(STAMP)  ## resolve the dependencies anew
	$(LOCK) pyproject.toml -o requirements.lock $(ARGS)
	$(LOCK) --group dev --extra rehearsal -c requirements.lock pyproject.toml -o requirements-dev.lock $(ARGS)
	$(LOCK) --group build --group sbom -c requirements-dev.lock -o requirements-build.lock $(ARGS)

clean:  ## remove .venv and all caches inside the checkout
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find operator tests -name __pycache__ -type d -prune -exec rm -rf {} +
