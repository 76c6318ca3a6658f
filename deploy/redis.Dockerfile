# Redis from Debian: the live bus. The same image makes each service's secrets, which needs nothing but a shell.
FROM debian:12.11-slim
WORKDIR /opt/thalweg
COPY scripts scripts
RUN scripts/install.sh redis && useradd --system --uid 8640 --home-dir /var/lib/thalweg thalweg \
 && install -d -o thalweg /var/lib/thalweg /var/lib/thalweg/secrets \
      /var/lib/thalweg/secrets-of/store /var/lib/thalweg/secrets-of/redis /var/lib/thalweg/secrets-of/setup \
      /var/lib/thalweg/secrets-of/api /var/lib/thalweg/secrets-of/collector /var/lib/thalweg/secrets-of/engine \
      /var/lib/thalweg/secrets-of/demo-source /var/lib/thalweg/secrets-of/demo-destination \
      /var/lib/thalweg/secrets-of/demo-data /var/lib/thalweg/secrets-of/demo-relay \
      /var/lib/thalweg/secrets-of/load
ENV THALWEG_HOME=/var/lib/thalweg THALWEG_LISTEN=0.0.0.0
USER thalweg
ENTRYPOINT ["scripts/run.sh"]
CMD ["redis"]
