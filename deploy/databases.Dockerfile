# PostgreSQL and Redis from Debian: the control store, the demo's two databases, its load, and the live bus.
FROM debian:12 AS extension
WORKDIR /opt/thalweg
COPY scripts scripts
RUN scripts/install.sh extension runtime
COPY engine/datalayer engine/datalayer
COPY engine/outputplugin engine/outputplugin
RUN mkdir -p build && scripts/build.sh server-libraries

FROM debian:12
WORKDIR /opt/thalweg
COPY scripts scripts
RUN scripts/install.sh runtime && useradd --system --uid 8640 --home-dir /var/lib/thalweg thalweg \
 && install -d -o thalweg /var/lib/thalweg /var/lib/thalweg/secrets /var/lib/thalweg/clusters
COPY --from=extension /usr/lib/postgresql/15/lib/thalweg_*.so /usr/lib/postgresql/15/lib/
COPY --from=extension /usr/share/postgresql/15/extension/thalweg_datalayer* /usr/share/postgresql/15/extension/
ENV THALWEG_HOME=/var/lib/thalweg THALWEG_LISTEN=0.0.0.0
USER thalweg
ENTRYPOINT ["scripts/run.sh"]
