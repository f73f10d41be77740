// A source of people on the Faros CDK. It stands outside its packages, which are installed into a cache.
const { createRequire } = require("node:module");
const from = createRequire(`${process.env.STORM_PACKAGES}/package.json`);
const { AirbyteSourceBase, AirbyteSourceLogger, AirbyteSourceRunner, AirbyteSpec, AirbyteStreamBase } =
  from("faros-airbyte-cdk");
const { makeAxiosInstance, wrapApiError } = from("faros-js-client");

const RETRIES = 5;
const DAY_MS = 86_400_000;

function clientOf(config, logger) {
  return makeAxiosInstance(
    {
      baseURL: config.base_url,
      headers: { "X-API-Key": config.api_key },
      timeout: 60_000,
      maxContentLength: Number.POSITIVE_INFINITY,
    },
    {
      retries: RETRIES,
      shouldResetTimeout: true,
      retryCondition: ({ response: { status = 0 } = {} }) =>
        status < 400 || status >= 500 || [423, 429].includes(status),
      retryDelay: (attempt, error) => {
        logger.warn(wrapApiError(error, `Retry attempt ${attempt} of ${RETRIES}`).message);
        const seconds = Number(error.response?.headers?.["retry-after"]);
        return seconds > 0 ? seconds * 1000 : 2 ** attempt * 1000;
      },
    },
  );
}

class People extends AirbyteStreamBase {
  constructor(config, logger) {
    super(logger);
    this.config = config;
  }

  get name() {
    return "people";
  }

  get primaryKey() {
    return "id";
  }

  get cursorField() {
    return "discoveredAt";
  }

  getJsonSchema() {
    return {
      type: "object",
      additionalProperties: true,
      properties: { id: { type: "string" }, discoveredAt: { type: ["string", "null"] } },
    };
  }

  async *readRecords(_mode, _cursorField, _slice, state) {
    const since =
      state?.cutoff === undefined ? this.config.start_date : dayOf(Date.parse(state.cutoff) - DAY_MS);
    const { data } = await clientOf(this.config, this.logger).get("/api/v1/public/people/stream", {
      params: { discovered_from: since },
      responseType: "text",
      transformResponse: (text) => text,
    });
    const people = data
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    const failure = people.find(({ success }) => success === false);
    if (failure !== undefined) throw new Error(`The export failed: ${failure.error?.code}`);
    yield* people;
  }

  getUpdatedState(state, { discoveredAt }) {
    return discoveredAt > (state.cutoff ?? "") ? { cutoff: discoveredAt } : state;
  }
}

const dayOf = (ms) => new Date(ms).toISOString().slice(0, 10);

class Contacts extends AirbyteSourceBase {
  get type() {
    return "contacts";
  }

  async spec() {
    const properties = { base_url: { type: "string" }, api_key: { type: "string", airbyte_secret: true } };
    return new AirbyteSpec({
      connectionSpecification: { type: "object", properties, additionalProperties: true },
    });
  }

  async checkConnection(config) {
    try {
      await clientOf(config, this.logger).get("/api/v1/public/people", { params: { limit: 1 } });
      return [true, undefined];
    } catch (error) {
      return [false, wrapApiError(error)];
    }
  }

  streams(config) {
    return [new People(config, this.logger)];
  }
}

const logger = new AirbyteSourceLogger();
new AirbyteSourceRunner(logger, new Contacts(logger)).mainCommand().parseAsync(process.argv);
