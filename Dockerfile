# The image that pipeline platforms run. Build: docker build -t source-contact-intelligence .
# The digest is Node 24.18.0 on Debian 12. Without a registry, `node scripts/image.js` builds on a local node:24-slim instead.
FROM node:24-slim@sha256:6f7b03f7c2c8e2e784dcf9295400527b9b1270fd37b7e9a7285cf83b6951452d AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json ./
COPY scripts scripts
COPY src src
RUN node scripts/build.js --without-sandbox && chmod -R a+rX dist

FROM node:24-slim@sha256:6f7b03f7c2c8e2e784dcf9295400527b9b1270fd37b7e9a7285cf83b6951452d
WORKDIR /airbyte/integration_code
COPY LICENSE package.json spec.json ./
COPY schemas schemas
COPY meltano meltano
COPY --from=build /build/dist dist
# A new volume at /data belongs to the image's user.
RUN mkdir /data && chown 1000:1000 /data

# Node 24 lets the young part of its heap grow to 64 MB, twice of Node 20: docs/dev/decisions/memory.md.
ENV NODE_OPTIONS="--max-semi-space-size=16"
# Absolute paths: platforms start this from folders of their own, and the first form through a shell.
ENV AIRBYTE_ENTRYPOINT="node /airbyte/integration_code/dist/source-contact-intelligence.js"
ENTRYPOINT ["node", "/airbyte/integration_code/dist/source-contact-intelligence.js"]

LABEL io.airbyte.name="contact-intelligence/source-contact-intelligence" \
      io.airbyte.version="1.0.0-dev" \
      org.opencontainers.image.title="source-contact-intelligence" \
      org.opencontainers.image.licenses="MIT"

# A number, so that a cluster can see that it is not root. Nothing is written; any other uid works as well.
USER 1000:1000
