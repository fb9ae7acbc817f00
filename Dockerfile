# Two stages: the first installs into /opt/glassblock, the second carries that folder and no installer.
ARG BASE_IMAGE=docker.io/library/python:3.13-slim-trixie

FROM ${BASE_IMAGE} AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ONLY_BINARY=:all:
RUN python3 -m venv /opt/build && python3 -m venv --without-pip /opt/glassblock
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN /opt/build/bin/pip install --require-hashes -r requirements/build.txt \
    && /opt/build/bin/pip --python /opt/glassblock/bin/python install \
        --require-hashes -r requirements/runtime.txt
COPY . .
RUN /opt/build/bin/hatchling build --target wheel \
    && /opt/build/bin/pip --python /opt/glassblock/bin/python install \
        --no-index --no-deps dist/*.whl

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="glassblock" \
    org.opencontainers.image.description="Runs a transformer block and returns every intermediate state" \
    org.opencontainers.image.version="0.1.0" \
    org.opencontainers.image.licenses="MIT"
# The base image's own pip, and where Debian keeps it in a base of its packages; Debian's package
# tools and shell stay, they are the base.
RUN rm -rf /usr/local/bin/pip* /usr/local/lib/python3*/ensurepip \
    /usr/local/lib/python3*/site-packages/pip* \
    /usr/lib/python3*/ensurepip /usr/share/python-wheels
# Where a volume for uploads may be laid; by itself the image takes none.
RUN mkdir -p /var/lib/glassblock/uploads && chown 10001:10001 /var/lib/glassblock/uploads
COPY --from=build /opt/glassblock /opt/glassblock
ENV OPENBLAS_NUM_THREADS=1 \
    OMP_NUM_THREADS=1 \
    MALLOC_MMAP_THRESHOLD_=33554432 \
    MALLOC_TRIM_THRESHOLD_=134217728 \
    MALLOC_TOP_PAD_=67108864 \
    MALLOC_ARENA_MAX=1 \
    PYTHONUNBUFFERED=1 \
    GLASSBLOCK_HOST=0.0.0.0 \
    GLASSBLOCK_PORT=8000
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
# http.client, unlike urllib, is not led astray by a proxy named in the environment.
HEALTHCHECK --interval=30s --timeout=3s --start-period=20s --retries=3 \
    CMD ["/opt/glassblock/bin/python", "-I", "-c", "import http.client, os, sys; connection = http.client.HTTPConnection('127.0.0.1', int(os.environ['GLASSBLOCK_PORT']), timeout=2); connection.request('GET', '/healthz'); sys.exit(connection.getresponse().status != 200)"]
ENTRYPOINT ["/opt/glassblock/bin/glassblock"]
CMD ["serve"]
