# The service as a small image: a stage that builds a virtual environment, and one that runs it.

FROM python:3.12-slim AS build
ENV UV_PYTHON_DOWNLOADS=never UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_NO_CACHE=1
WORKDIR /src

# What changes seldom comes first: the pinned requirements, each checked against its hash.
# `--build-arg REQUIREMENTS=all` adds those of traces and of archives in S3 and PostgreSQL.
ARG REQUIREMENTS=run
COPY requirements/uv.txt requirements/run.txt requirements/all.txt requirements/dev.txt requirements/
RUN python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements/uv.txt \
 && uv venv --no-project --python /usr/local/bin/python /opt/rummikub \
 && uv pip sync --python /opt/rummikub --require-hashes "requirements/$REQUIREMENTS.txt"

# The project and its generated code. dev.txt is here for the build backend's pin and hash alone.
COPY pyproject.toml README.md LICENSE ./
COPY engine engine
COPY service service
COPY clients/python clients/python
RUN uv pip install --python /opt/rummikub --no-deps --build-constraints requirements/dev.txt . ./engine ./clients/python


FROM python:3.12-slim

LABEL org.opencontainers.image.title="rummikub-service" \
      org.opencontainers.image.description="A rules-engine microservice for Rummikub with a gRPC API" \
      org.opencontainers.image.source="https://rummikub.example/repository" \
      org.opencontainers.image.licenses="MIT"

# A fixed id, so that volumes and security policies can name it. Without RUMMIKUB_REDIS_URL the embedded store writes to
# /app/data: RUMMIKUB_REQUIRE_VOLUME refuses to start it there without a volume, with which the games would be lost.
RUN groupadd --system --gid 10001 rummikub \
 && useradd --system --uid 10001 --gid rummikub --home-dir /app --no-create-home --shell /usr/sbin/nologin rummikub \
 && install --directory --owner=rummikub --group=rummikub --mode=0700 /app/data

COPY --from=build /opt/rummikub /opt/rummikub

ENV PATH=/opt/rummikub/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    RUMMIKUB_LISTEN=0.0.0.0:50051 \
    RUMMIKUB_METRICS_LISTEN=0.0.0.0:9464 \
    RUMMIKUB_REQUIRE_VOLUME=true

WORKDIR /app
USER 10001:10001
# 50052 is for ValidationService alone, if RUMMIKUB_VALIDATION_LISTEN=0.0.0.0:50052 asks for it.
EXPOSE 50051 50052 9464
STOPSIGNAL SIGTERM

# Asks the gRPC health service of RUMMIKUB_LISTEN; exits 0 when it serves.
HEALTHCHECK --interval=10s --timeout=5s --start-period=15s --retries=3 CMD ["python", "-m", "service", "--health"]

CMD ["python", "-m", "service"]
