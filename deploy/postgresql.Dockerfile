# PostgreSQL from Debian: the control store, the demo's two databases, its data and its load.
FROM debian:12.11-slim AS extension
WORKDIR /opt/thalweg
COPY scripts scripts
RUN scripts/install.sh extension postgresql
COPY engine/datalayer engine/datalayer
COPY engine/outputplugin engine/outputplugin
RUN mkdir -p build && scripts/build.sh server-libraries

FROM debian:12.11-slim
WORKDIR /opt/thalweg
COPY scripts scripts
RUN scripts/install.sh postgresql && useradd --system --uid 8640 --home-dir /var/lib/thalweg thalweg \
 && install -d -o thalweg /var/lib/thalweg /var/lib/thalweg/secrets /var/lib/thalweg/clusters
COPY --from=extension /usr/lib/postgresql/15/lib/thalweg_*.so /usr/lib/postgresql/15/lib/
COPY --from=extension /usr/share/postgresql/15/extension/thalweg_datalayer* /usr/share/postgresql/15/extension/
ENV THALWEG_HOME=/var/lib/thalweg THALWEG_LISTEN=0.0.0.0
USER thalweg
ENTRYPOINT ["scripts/run.sh"]
