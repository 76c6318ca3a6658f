# The control plane: API with the built console and its help, collector, and the set-up that brings the services together.
FROM debian:12.11-slim AS console
WORKDIR /opt/thalweg
COPY scripts scripts
RUN scripts/install.sh control
COPY frontend frontend
COPY backend/openapi.json backend/openapi.json
RUN scripts/build.sh console

FROM debian:12.11-slim AS help
WORKDIR /opt/thalweg
COPY scripts scripts
RUN scripts/install.sh control
COPY *.md LICENSE ./
COPY docs docs
COPY deploy deploy
COPY migrations migrations
COPY engine engine
COPY backend backend
COPY frontend frontend
COPY e2e e2e
RUN scripts/build.sh help

FROM debian:12.11-slim
WORKDIR /opt/thalweg
COPY scripts scripts
RUN scripts/install.sh control && useradd --system --uid 8640 --home-dir /var/lib/thalweg thalweg \
 && install -d -o thalweg /var/lib/thalweg /var/lib/thalweg/secrets
COPY backend backend
RUN scripts/build.sh venv
COPY migrations migrations
COPY engine/contract engine/contract
COPY --from=console /opt/thalweg/frontend/dist frontend/dist
COPY --from=help /opt/thalweg/build/help build/help
ENV THALWEG_HOME=/var/lib/thalweg
USER thalweg
ENTRYPOINT ["scripts/run.sh"]
CMD ["api"]
