# Makes each service's secrets: nothing but a shell. Each directory is where a volume of the services is mounted.
FROM debian:12.11-slim
WORKDIR /opt/thalweg
COPY scripts scripts
RUN useradd --system --uid 8640 --home-dir /var/lib/thalweg thalweg \
 && install -d -o thalweg /var/lib/thalweg /var/lib/thalweg/secrets \
      /var/lib/thalweg/secrets-of/store /var/lib/thalweg/secrets-of/redis /var/lib/thalweg/secrets-of/setup \
      /var/lib/thalweg/secrets-of/api /var/lib/thalweg/secrets-of/collector /var/lib/thalweg/secrets-of/engine \
      /var/lib/thalweg/secrets-of/demo-source /var/lib/thalweg/secrets-of/demo-destination \
      /var/lib/thalweg/secrets-of/demo-data /var/lib/thalweg/secrets-of/demo-relay \
      /var/lib/thalweg/secrets-of/load
ENV THALWEG_HOME=/var/lib/thalweg
USER thalweg
ENTRYPOINT ["scripts/container_secrets.sh"]
