# syntax=docker/dockerfile:1
# The operator's image: Python, the locked runtime dependencies and the operator. No compiler, no tests, no rehearsal.
#
#   docker build --build-arg BASE=python:3.11-slim-bookworm@sha256:... --build-arg VERSION=0.1.0 -t gpupod-operator .
#
# Any base with Python 3.11+ (with venv and pip) does. Releases give BASE with its digest.
# Behind a proxy or a mirror: --secret id=pip.conf,src=... (pip's own settings) and, where it names `cert =
# /run/secrets/ca.crt`, --secret id=ca.crt,src=.... Neither gets into a layer.
ARG BASE=docker.io/library/python:3.11-slim-bookworm

FROM ${BASE} AS builder
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
RUN python3 -m venv /opt/gpupod && python3 -m venv /opt/build
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
# Wheels only: nothing is compiled, and nothing gets in whose hash is not in a lock file.
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=ca.crt \
    /opt/gpupod/bin/pip install --quiet --require-hashes --only-binary :all: -r requirements.lock \
 && /opt/build/bin/pip install --quiet --require-hashes --only-binary :all: -r requirements-build.lock
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY crds crds
COPY manifests manifests
COPY operator operator
# The rehearsal world is part of the distribution and not of the image.
RUN /opt/build/bin/pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir /src/dist . \
 && /opt/gpupod/bin/pip install --quiet --no-deps --no-index /src/dist/*.whl \
 && /opt/gpupod/bin/python -c "import pathlib, shutil, sysconfig; shutil.rmtree(pathlib.Path(sysconfig.get_path('purelib')) / 'gpupod_rehearsal')" \
 && /opt/gpupod/bin/pip uninstall --quiet --yes pip setuptools \
 && /opt/build/bin/cyclonedx-py environment --output-reproducible -o /opt/gpupod/sbom.cdx.json /opt/gpupod/bin/python \
 && /opt/gpupod/bin/python -m compileall -q -j 0 /opt/gpupod/lib

FROM ${BASE}
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG SOURCE=https://github.com/gpupod/gpupod-operator
LABEL org.opencontainers.image.title="gpupod-operator" \
      org.opencontainers.image.description="Rents RunPod GPU pods for experiment sweeps and loses no result" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=builder /opt/gpupod /opt/gpupod
ENV PATH=/opt/gpupod/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HF_HUB_DISABLE_TELEMETRY=1 \
    HOME=/nonexistent
WORKDIR /
# A number, so that runAsNonRoot can be checked without a passwd entry.
USER 65532:65532
ENTRYPOINT ["gpupod-operator"]
CMD ["run"]
