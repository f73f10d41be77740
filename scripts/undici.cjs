// The parts of undici that the program uses, for the bundle. undici's own entry also loads fetch, mocks and caches, which
// would take a third of the time of a short command.
const Dispatcher = require("undici/lib/dispatcher/dispatcher.js");
const Agent = require("undici/lib/dispatcher/agent.js");
const ProxyAgent = require("undici/lib/dispatcher/proxy-agent.js");
const api = require("undici/lib/api");

// undici's entry does the same. Proxies need the methods too.
Object.assign(Dispatcher.prototype, api);

/** Sends a request to a URL by the dispatcher among its options, as undici's `request`. */
function request(url, options) {
  const { origin, pathname, search } = new URL(url);
  return api.request.call(options.dispatcher, { method: "GET", ...options, origin, path: pathname + search });
}

module.exports = { Agent, ProxyAgent, request };
