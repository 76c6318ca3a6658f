# Redis from Debian: the live bus.
FROM debian:12.11-slim
WORKDIR /opt/thalweg
COPY scripts scripts
RUN scripts/install.sh redis && useradd --system --uid 8640 --home-dir /var/lib/thalweg thalweg \
 && install -d -o thalweg /var/lib/thalweg /var/lib/thalweg/secrets
ENV THALWEG_HOME=/var/lib/thalweg THALWEG_LISTEN=0.0.0.0
USER thalweg
ENTRYPOINT ["scripts/run.sh"]
CMD ["redis"]
