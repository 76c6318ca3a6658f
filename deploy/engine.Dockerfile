# The engine alone: thalwegd and the libraries that it links.
FROM debian:12.11-slim AS build
WORKDIR /opt/thalweg
COPY scripts scripts
RUN scripts/install.sh build
COPY VERSION VERSION
COPY engine engine
RUN scripts/build.sh engine

FROM debian:12.11-slim
WORKDIR /opt/thalweg
COPY scripts scripts
RUN scripts/install.sh engine && useradd --system --uid 8640 --home-dir /var/lib/thalweg thalweg \
 && install -d -o thalweg /var/lib/thalweg /var/lib/thalweg/secrets /var/lib/thalweg/engine
COPY --from=build /opt/thalweg/build/release/src/daemon/thalwegd /opt/thalweg/bin/thalwegd
ENV THALWEG_HOME=/var/lib/thalweg THALWEG_ENGINE_BINARY=/opt/thalweg/bin/thalwegd
USER thalweg
ENTRYPOINT ["scripts/run.sh"]
CMD ["engine"]
