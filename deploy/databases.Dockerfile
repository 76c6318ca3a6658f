# PostgreSQL and Redis from Debian: the control store, the demo's two databases, its load, and the live bus.
FROM debian:12
WORKDIR /opt/thalweg
COPY scripts scripts
RUN scripts/install.sh runtime && useradd --system --uid 8640 --home-dir /var/lib/thalweg thalweg \
 && install -d -o thalweg /var/lib/thalweg /var/lib/thalweg/secrets /var/lib/thalweg/clusters
ENV THALWEG_HOME=/var/lib/thalweg THALWEG_LISTEN=0.0.0.0
USER thalweg
ENTRYPOINT ["scripts/run.sh"]
