// Replays recorded conversations through the code of peers written for Node: `node pages.mjs JOB`, as pages.py does.
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { limited, load, modelMessage, promptMessage } from './forms.mjs';

const job = JSON.parse(process.argv[2]);
const number = (message) => message.providerOptions.bench.at;

/** TokenLimiter; it refuses a call that nothing fits into, and then there is no page. */
const mastra = (trimMode) => async (budget) => {
  const { TokenLimiterProcessor } = await load('@mastra/core/processors');
  const limiter = new TokenLimiterProcessor({ limit: budget, trimMode });
  return {
    form: promptMessage,
    page: async (history, recorded) => {
      const kept = await limited(limiter, history).catch(() => null);
      return kept?.map((message) => recorded.told[number(message)]);
    },
  };
};

/** pruneMessages: calls and results before the last three messages go, and all reasoning; it knows no budget. */
async function vercel() {
  const { pruneMessages } = await load('ai');
  return {
    form: modelMessage,
    page: (history, recorded) =>
      pruneMessages({ messages: history, toolCalls: 'before-last-3-messages', reasoning: 'all' })
        .map((message) => asRecorded(message, history[number(message)], recorded)),
  };
}

/** A message without the parts that went. */
function asRecorded(message, whole, { messages, told }) {
  const at = number(message);
  if (message.content.length === whole.content.length) return told[at];
  const kept = new Set(message.content.filter((part) => part.type === 'tool-call').map((part) => part.toolCallId));
  const { reasoning_content, tool_calls, ...rest } = messages[at];
  const calls = (tool_calls ?? []).filter((call) => kept.has(call.id));
  const reasoning = message.content.some((part) => part.type === 'reasoning') ? { reasoning_content } : {};
  return JSON.stringify({ ...rest, ...reasoning, ...(calls.length ? { tool_calls: calls } : {}) });
}

const peers = {
  'mastra TokenLimiter': mastra('best-fit'),
  'mastra TokenLimiter, contiguous': mastra('contiguous'),
  'vercel pruneMessages': vercel,
};

/** The page before each answer. */
async function* calls(peer, conversation) {
  const { messages } = conversation;
  const recorded = { messages, told: messages.map((message) => JSON.stringify(message)) };
  const history = [];
  let turn = 0;
  for (const [at, message] of messages.entries()) {
    if (message.role === 'assistant') {
      const page = at > 0 ? await peer.page(history, recorded) : null;
      if (page) yield [{ turn }, page];
      turn += 1;
    }
    history.push(peer.form(message, at));
  }
}

/** The page for each question, behind the whole conversation. */
async function* questions(peer, conversation) {
  const { messages, meta } = conversation;
  const recorded = { messages, told: messages.map((message) => JSON.stringify(message)) };
  const page = await peer.page(messages.map(peer.form), recorded);
  for (const [question, { question: content }] of (meta.qa ?? []).entries()) {
    yield [{ question, budget: job.budget }, [...page, JSON.stringify({ role: 'user', content })]];
  }
}

const peer = await peers[job.peer](job.budget);
const out = openSync(job.out, 'a');
for (const line of readFileSync(job.conversations, 'utf8').split('\n').filter(Boolean)) {
  const conversation = JSON.parse(line);
  for await (const [which, page] of (job.questions ? questions : calls)(peer, conversation)) {
    const head = JSON.stringify({ conversation: conversation.id, ...which });
    writeSync(out, `${head.slice(0, -1)},"messages":[${page.join(',')}]}\n`);
  }
}
closeSync(out);
