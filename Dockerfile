# Skyrocket: name server and broker in one container.
#
#   docker build -t skyrocket .
#   docker run -p 9876:9876 -p 10909:10909 -p 10911:10911 -v skyrocket-store:/store \
#     -e SKYROCKET_BROKER_BROKER_IP1=<address of this machine> skyrocket
#
# /metrics, /health and /ready are at port 5557; a name server and a controller need a health check of their own.
#
# Clients connect to the address that the broker tells them, so it must be the host's and not the container's.

FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/skyrocket \
    && /opt/skyrocket/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt ".[server,console,tls,zookeeper,etcd]"

FROM python:3.11-slim
COPY --from=build /opt/skyrocket /opt/skyrocket
RUN useradd --system --uid 3000 --create-home --home-dir /home/skyrocket skyrocket \
    && mkdir /store \
    && chown skyrocket:skyrocket /store
ENV PATH=/opt/skyrocket/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    SKYROCKET_BROKER_STORE_PATH_ROOT_DIR=/store \
    SKYROCKET_BROKER_METRICS_EXPORTER_TYPE=PROM
USER skyrocket
VOLUME /store
EXPOSE 5557 9876 10909 10911
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:5557/ready', timeout=2)"]
ENTRYPOINT ["skyrocket"]
CMD ["standalone"]
