// The reference behind a pipe: each line on stdin is a request, each line on stdout its answer.
//   node driver.mjs NODE_MODULES
// {"do": "view",  "path"}                                       what the reference reads in a session file
// {"do": "write", "path" | "folder" + "cwd", "steps"}           calls of its session manager; "$N" stands for the result of step N
// {"do": "run",   "path" | "folder" + "cwd", "agentDir", "acts"}  a whole agent session: {"prompt", "replies"}, {"compact", "replies"}
//   a "write" with "keep": true leaves the session manager open for the next one on that path
// {"do": "list",  "folder", "cwd"}                              the sessions it finds in a folder
// The answer is a view, with "path" and "results"; or {"error": text}.
// Only the package's public faces are used: its session manager, its agent session, its faux provider.
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

console.log = console.info = console.error; // stdout is for answers alone
const root = process.argv[2];
const load = (file) => import(pathToFileURL(path.join(root, "@earendil-works", file)).href);
const pi = await load("pi-coding-agent/dist/index.js");
const faux = await load("pi-ai/dist/providers/faux.js");

const SCHEMA = { type: "object", properties: { x: { type: "number" } } };
const NOTE = {
  name: "note",
  label: "note",
  description: "notes a number",
  parameters: SCHEMA,
  execute: async (_id, params) => ({ content: [{ type: "text", text: `noted ${params.x}` }], details: { seen: [params.x, null] } }),
};

function view(sm) {
  const entries = sm.getEntries();
  const context = sm.buildSessionContext();
  const outline = (node) => [node.entry.id, node.children.map(outline)];
  return {
    header: sm.getHeader(),
    entries,
    leaf: sm.getLeafId(),
    branch: sm.getBranch().map((entry) => entry.id),
    tree: sm.getTree().map(outline),
    labels: entries.map((entry) => [entry.id, sm.getLabel(entry.id)]).filter(([, label]) => label !== undefined),
    name: sm.getSessionName() ?? null,
    messages: context.messages,
    thinkingLevel: context.thinkingLevel,
    model: context.model,
  };
}

const opened = ({ path: file, folder, cwd }) => (file ? pi.SessionManager.open(file) : pi.SessionManager.create(cwd, folder));
const kept = new Map();

function write(request) {
  const sm = kept.get(request.path) ?? opened(request);
  if (request.keep) kept.set(sm.getSessionFile(), sm);
  const results = [];
  const known = (value) => (typeof value === "string" && /^\$\d+$/.test(value) ? results[Number(value.slice(1))] : value);
  for (const [method, ...given] of request.steps) {
    const result = sm[method](...given.map(known));
    results.push(result?.id ?? result ?? null); // some calls return the entry, most its id
  }
  return { path: sm.getSessionFile(), results, ...view(sm) };
}

const reply = (said) =>
  said.calls
    ? faux.fauxAssistantMessage(said.calls.map((x) => faux.fauxToolCall("note", { x })), { stopReason: "toolUse" })
    : faux.fauxAssistantMessage(said.text);

async function agentSession(sm, agentDir) {
  const provider = faux.fauxProvider({ models: [{ id: "faux-1", contextWindow: 100_000, maxTokens: 10_000 }] });
  const modelRuntime = await pi.ModelRuntime.create({
    authPath: path.join(agentDir, "auth.json"),
    modelsPath: path.join(agentDir, "models.json"),
    allowModelNetwork: false,
  });
  modelRuntime.registerNativeProvider(provider.provider);
  const cwd = sm.getCwd();
  const settingsManager = pi.SettingsManager.inMemory({ compaction: { enabled: false, keepRecentTokens: 1 }, retry: { enabled: false } });
  const bare = { noExtensions: true, noSkills: true, noPromptTemplates: true, noThemes: true, noContextFiles: true };
  const resourceLoader = new pi.DefaultResourceLoader({ cwd, agentDir, settingsManager, ...bare });
  await resourceLoader.reload();
  const { session } = await pi.createAgentSession({
    cwd,
    agentDir,
    model: provider.getModel(),
    thinkingLevel: "off",
    modelRuntime,
    resourceLoader,
    sessionManager: sm,
    settingsManager,
    customTools: [NOTE],
    tools: [NOTE.name],
  });
  await session.bindExtensions({});
  return { session, provider };
}

async function run(request) {
  const sm = opened(request);
  const { session, provider } = await agentSession(sm, request.agentDir);
  for (const act of request.acts) {
    provider.setResponses(act.replies.map(reply));
    await ("compact" in act ? session.compact(act.compact) : session.prompt(act.prompt));
  }
  session.dispose();
  return { path: sm.getSessionFile(), results: [], ...view(sm) };
}

const list = async ({ folder, cwd }) => ({ sessions: await pi.SessionManager.list(cwd, folder) });

const DOES = { view: (request) => view(opened(request)), list, write, run };

for await (const line of readline.createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = await DOES[request.do](request);
  } catch (error) {
    answer = { error: String(error?.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);
