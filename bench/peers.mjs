// Peers written for Node, as workers of bench/run.py: `node peers.mjs NAME`, one JSON object a line, as in peers.py.
// The folder with their packages is the working folder.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { createInterface } from 'node:readline';
import { performance } from 'node:perf_hooks';

const require = createRequire(pathToFileURL(process.cwd() + '/package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)));

const history = (file) => JSON.parse(readFileSync(file, 'utf8')).messages;

/** A message in the AI SDK's form. */
function modelMessage(message) {
  if (message.role === 'tool') {
    const output = { type: 'text', value: message.content };
    return { role: 'tool', content: [{ type: 'tool-result', toolCallId: message.tool_call_id, toolName: 'read_file', output }] };
  }
  if (!message.tool_calls) return { role: message.role, content: message.content };
  const calls = message.tool_calls.map((call) => ({
    type: 'tool-call', toolCallId: call.id, toolName: call.function.name, input: JSON.parse(call.function.arguments),
  }));
  return { role: 'assistant', content: [{ type: 'text', text: message.content ?? '' }, ...calls] };
}

/** A message in the form that the AI SDK hands to a model. */
function promptMessage(message) {
  const { role, content } = modelMessage(message);
  return { role, content: role === 'system' || Array.isArray(content) ? content : [{ type: 'text', text: content }] };
}

/** TokenLimiter, where it keeps a request to its budget: the newest messages that fit, by its own estimate. */
const mastra = (trimMode) => async ({ file, budget }) => {
  const { TokenLimiterProcessor } = await load('@mastra/core/processors');
  const prompt = history(file).map(promptMessage);
  const limiter = new TokenLimiterProcessor({ limit: budget, trimMode });
  return async () => ({ messages: (await limiter.processLLMRequest({ prompt })).prompt.length });
};

const peers = {
  // pruneMessages: tool calls before the last three messages; it knows no budget.
  'vercel pruneMessages compile': async ({ file }) => {
    const { pruneMessages } = await load('ai');
    const messages = history(file).map(modelMessage);
    return () => ({ messages: pruneMessages({ messages, toolCalls: 'before-last-3-messages', reasoning: 'all' }).length });
  },
  'mastra TokenLimiter compile': mastra('best-fit'),
  'mastra TokenLimiter, contiguous compile': mastra('contiguous'),
  'gpt-tokenizer count': async ({ file }) => {
    const { countTokens } = await load('gpt-tokenizer/encoding/o200k_base');
    const text = readFileSync(file, 'utf8');
    return () => ({ tokens: countTokens(text) });
  },
  'tokenx count': async ({ file }) => {
    const { estimateTokenCount } = await load('tokenx');
    const text = readFileSync(file, 'utf8');
    return () => ({ tokens: estimateTokenCount(text) });
  },
};

const name = process.argv[2];
let run;
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  if (asked.task) {
    run = await peers[`${name} ${asked.task}`](asked);
    console.log(JSON.stringify({ ready: name }));
    continue;
  }
  const seconds = [];
  let came;
  for (let at = 0; at < asked.measure; at += 1) {
    const start = performance.now();
    came = await run();
    seconds.push((performance.now() - start) / 1000);
  }
  console.log(JSON.stringify({ seconds, came }));
}
