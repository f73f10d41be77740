// Loaded into a process under test (`node --require`): a network in which the machines are far away. Every IPv4 address is this
// machine, and a connection takes FAR_MS. Every IPv6 address is, too, unless FAR_ROUTES has no 6. The addresses of a name are
// one of each family, in the order of FAR_NAMES.
const dns = require("node:dns");
const { syncBuiltinESMExports } = require("node:module");
const { TCP } = process.binding("tcp_wrap");

const { FAR_MS = "0", FAR_NAMES = "46", FAR_ROUTES = "46" } = process.env;
const NETWORK_UNREACHABLE = -101;
const ADDRESSES = { 4: { address: "192.0.2.1", family: 4 }, 6: { address: "2001:db8::1", family: 6 } };
const { connect } = TCP.prototype;

dns.lookup = (_name, options, done) => {
  const found = [...FAR_NAMES].map((family) => ADDRESSES[family]);
  if (options.all) done(null, found);
  else done(null, found[0].address, found[0].family);
};
TCP.prototype.connect = function (request, _address, port) {
  setTimeout(() => {
    const failed = connect.call(this, request, "127.0.0.1", port);
    if (failed) request.oncomplete(failed, this, request);
  }, Number(FAR_MS));
  return 0;
};
TCP.prototype.connect6 = function (...given) {
  return FAR_ROUTES.includes("6") ? this.connect(...given) : NETWORK_UNREACHABLE;
};
syncBuiltinESMExports();
