// Peers written for Node, as workers of bench/run.py: `node peers.mjs NAME`, one JSON object a line, as in peers.py.
// The folder with their packages is the working folder.
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { performance } from 'node:perf_hooks';
import { limited, load, modelMessage, promptMessage } from './forms.mjs';

const history = (file) => JSON.parse(readFileSync(file, 'utf8')).messages;

/** TokenLimiter, where it keeps a request to its budget: the newest messages that fit, by its own estimate. */
const mastra = (trimMode) => async ({ file, budget }) => {
  const { TokenLimiterProcessor } = await load('@mastra/core/processors');
  const prompt = history(file).map(promptMessage);
  const limiter = new TokenLimiterProcessor({ limit: budget, trimMode });
  return async () => ({ messages: (await limited(limiter, prompt)).length });
};

let text; // what is counted
let ids; // the ids of all tokens, of those who know them

const peers = {
  // pruneMessages: tool calls before the last three messages; it knows no budget.
  'vercel pruneMessages compile': async ({ file }) => {
    const { pruneMessages } = await load('ai');
    const messages = history(file).map(modelMessage);
    const how = { toolCalls: 'before-last-3-messages', reasoning: 'all' };
    return () => ({ messages: pruneMessages({ messages, ...how }).length });
  },
  'mastra TokenLimiter compile': mastra('best-fit'),
  'mastra TokenLimiter, contiguous compile': mastra('contiguous'),
  'gpt-tokenizer count': async ({ file }) => {
    const { countTokens, encode } = await load('gpt-tokenizer/encoding/o200k_base');
    text = readFileSync(file, 'utf8');
    ids = () => encode(text);
    return () => ({ tokens: countTokens(text) });
  },
  'tokenx count': async ({ file }) => {
    const { estimateTokenCount } = await load('tokenx');
    text = readFileSync(file, 'utf8');
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
  if (asked.text) {
    text = readFileSync(asked.text, 'utf8');
    console.log(JSON.stringify({ read: name }));
    continue;
  }
  if (asked.ids) {
    writeFileSync(asked.ids, JSON.stringify(ids()));
    console.log(JSON.stringify({ written: name }));
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
