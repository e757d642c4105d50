# Three images from one file: `service` (HTTP, reconciler, migrations), `worker` (control environment and the evaluation
# environment on top). The packages run from /app as they run from a checkout: migrations, dashboards and lanes lie beside them.
FROM python:3.11-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1 PYTHONSAFEPATH=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN apt-get update \
 && apt-get install -y --no-install-recommends git tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home --home-dir /var/lib/driftline driftline
WORKDIR /app
ENTRYPOINT ["tini", "--"]

FROM base AS control
COPY requirements/control.lock requirements/
RUN python -m venv .venv && .venv/bin/pip install -r requirements/control.lock
COPY pyproject.toml README.md LICENSE ./
COPY compare compare
COPY service service
COPY worker worker
RUN .venv/bin/pip install --no-deps --no-build-isolation -e .
ENV PATH=/app/.venv/bin:$PATH

FROM control AS service
COPY migrations migrations
COPY dashboards dashboards
COPY canary canary
COPY driftline.toml ./
USER driftline
EXPOSE 8642
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8642/healthz', timeout=2)"]
CMD ["python", "-m", "driftline_service"]

# The evaluation environment. PyPI's torch carries CUDA; for a worker without a GPU pass
# --build-arg TORCH_INDEX=<an index of CPU builds> and save several GB.
FROM control AS worker
ARG TORCH_INDEX=
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY requirements/eval.lock requirements/
RUN python -m venv .venv-eval \
 && .venv-eval/bin/pip install ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -r requirements/eval.lock
COPY kernels kernels
RUN .venv-eval/bin/pip install --no-deps --no-build-isolation -e kernels
COPY canary canary
COPY driftline.toml ./
USER driftline
HEALTHCHECK NONE
CMD ["python", "-m", "driftline_worker"]
