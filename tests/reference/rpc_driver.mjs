// The reference's RPC client behind a pipe: each line on stdin is a call, each line on stdout its outcome.
//   node rpc_driver.mjs NODE_MODULES
// {"new": OPTIONS}                    another client
// {"call": NAME, "args": [...]}       a method of it; {"result": VALUE} once it resolves, {"error": TEXT} if it throws
// {"start": NAME, "args": [...]}      the same, without waiting; {"wait": true} gives its outcome later
// {"until": TYPE}                     answers once listeners heard an event of that type, since "events" was asked for
// {"events": true}                    what listeners heard since the last time
// {"methods": true}                   the names of all methods of the class, and of those that were called, also by itself
// The class is used as it is, behind a proxy that only writes down which of its methods are used.
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const root = process.argv[2];
const { RpcClient } = await import(pathToFileURL(path.join(root, "@earendil-works", "pi-coding-agent/dist/index.js")).href);
const methods = Object.getOwnPropertyNames(RpcClient.prototype).filter((name) => name !== "constructor");
const called = new Set();
let client;
let heard = [];
let pending;
let awaited = () => {};

const watched = (object) =>
  new Proxy(object, {
    get(target, name, receiver) {
      if (methods.includes(name)) called.add(name);
      return Reflect.get(target, name, receiver);
    },
  });

const outcome = async (name, args) => {
  try {
    if (name === "onEvent") {
      client.onEvent((event) => {
        heard.push(event);
        awaited(event.type);
      });
      return {};
    }
    return { result: await client[name](...args.map((each) => (each === null ? undefined : each))) };
  } catch (error) {
    return { error: String(error?.message ?? error) };
  }
};

async function answer(request) {
  if (request.new) {
    client = watched(new RpcClient(request.new));
    return {};
  }
  if (request.start) {
    pending = outcome(request.start, request.args ?? []);
    return {};
  }
  if (request.wait) return pending;
  if (request.until) {
    if (heard.some((event) => event.type === request.until)) return {};
    return new Promise((resolve) => {
      awaited = (type) => type === request.until && resolve({});
    });
  }
  if (request.events) {
    const events = heard;
    heard = [];
    return { result: events };
  }
  if (request.methods) return { result: { all: methods, called: [...called] } };
  return outcome(request.call, request.args ?? []);
}

for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
}
process.exit(0);
