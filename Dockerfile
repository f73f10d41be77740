# The image that pipeline platforms run. Build: docker build -t source-contact-intelligence .
FROM node:24-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json spec.json ./
COPY scripts scripts
COPY schemas schemas
COPY src src
RUN npm run build \
  && npm prune --omit=dev --no-audit --no-fund \
  && rm -rf node_modules/.package-lock.json node_modules/.bin \
  && find node_modules -type d \( -name test -o -name tests -o -name spec -o -name benchmark -o -name docs -o -name '.*' \) -prune -exec rm -rf {} + \
  && find node_modules -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' -o -iname '*.md' -o -name 'test.js' -o -name '.*' \) -delete \
  && find node_modules -type d -empty -delete \
  && chmod -R a+rX dist node_modules schemas spec.json package.json

FROM node:24-slim
WORKDIR /airbyte/integration_code
COPY --from=build /build/package.json /build/spec.json ./
COPY --from=build /build/node_modules node_modules
COPY --from=build /build/schemas schemas
COPY --from=build /build/dist dist

# Absolute paths: platforms start this from folders of their own, and the first form through a shell.
ENV AIRBYTE_ENTRYPOINT="node /airbyte/integration_code/dist/source-contact-intelligence.js"
ENTRYPOINT ["node", "/airbyte/integration_code/dist/source-contact-intelligence.js"]

LABEL io.airbyte.name="contact-intelligence/source-contact-intelligence" \
      io.airbyte.version="0.1.0" \
      org.opencontainers.image.title="source-contact-intelligence" \
      org.opencontainers.image.licenses="MIT"

# A number, so that a cluster can see that it is not root. Nothing is written; any other uid works as well.
USER 1000:1000
