// An agent written with the Vercel AI SDK, as its documentation writes one. What it reads and writes is what frameworks.py
// does.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { readFileSync } from "node:fs";

const KEY = "sk-test";
const CALLS_MAX = 40;
const OUTPUT_TOKENS_MAX = 4096;
const MILLISECONDS_MAX = 60_000;
// What is told of a stream: not the times and ids that the package makes up itself.
const HEARD = ["text-delta", "reasoning-delta", "tool-call", "finish-step"];

// Answers a call: the same for the same arguments, and long enough to be worth a cache.
const found = (name, argument, value) =>
  [`FOUND-${name}-${value}.`, ...Array.from({ length: 40 }, (_, number) => `${number}: ${argument} ${value}`)].join("\n");

const offered = (name, description, argument) =>
  tool({
    description,
    inputSchema: jsonSchema({
      type: "object", properties: { [argument]: { type: "string" } }, required: [argument], additionalProperties: false,
    }),
    execute: async (input) => found(name, argument, input[argument]),
  });

const tools = {
  read_file: offered("read_file", "Reads a file.", "path"),
  list_folder: offered("list_folder", "Lists the files of a folder.", "folder"),
};

const tell = (talk, saw) => console.log(JSON.stringify({ talk, ...saw }));

const mark = { anthropic: { cacheControl: { type: "ephemeral" } } };

function model(plan) {
  if (plan.wire === "anthropic") {
    return createAnthropic({ apiKey: KEY, baseURL: `${plan.base_url}/v1` })(plan.model);
  }
  const openai = createOpenAI({ apiKey: KEY, baseURL: `${plan.base_url}/v1` });
  return plan.wire === "openai_chat" ? openai.chat(plan.model) : openai.responses(plan.model);
}

// The history with a mark of the cache at its end, which moves with every step.
const marked = (messages) => [
  ...messages.slice(0, -1).map(({ providerOptions, ...message }) => message),
  { ...messages.at(-1), providerOptions: mark },
];

async function talk(plan, number) {
  const messages = [];
  const isAnthropic = plan.wire === "anthropic";
  const request = {
    model: model(plan),
    system: isAnthropic ? { role: "system", content: plan.system, providerOptions: mark } : plan.system,
    tools, maxRetries: 0, maxOutputTokens: isAnthropic ? OUTPUT_TOKENS_MAX : undefined, stopWhen: stepCountIs(CALLS_MAX),
    prepareStep: ({ messages }) => (isAnthropic ? { messages: marked(messages) } : {}),
    providerOptions: {
      openai: plan.wire === "openai_responses"
        ? { store: false, reasoningSummary: "auto", include: ["reasoning.encrypted_content"] } : {},
      anthropic: { thinking: { type: "adaptive", display: "summarized" } },
    },
  };
  for (const words of plan.words) {
    messages.push({ role: "user", content: words });
    const asked = { ...request, messages, abortSignal: AbortSignal.timeout(MILLISECONDS_MAX) };
    let result;
    if (plan.streams) {
      result = streamText({ ...asked, onError: ({ error }) => { throw error; } });
      for await (const { type, text, input, toolCallId, usage, finishReason } of result.fullStream) {
        if (HEARD.includes(type)) tell(number, { type, text, input, toolCallId, usage, finishReason });
      }
    } else {
      result = await generateText(asked);
    }
    for (const step of await result.steps) {
      const calls = step.toolCalls.map(({ toolCallId, toolName, input }) => ({ toolCallId, toolName, input }));
      const { text, reasoningText, usage, finishReason, response } = step;
      tell(number, { reply: { text, reasoningText, calls, usage, finishReason, id: response.id } });
    }
    messages.push(...(await result.response).messages);
  }
}

const { talks } = JSON.parse(readFileSync(0, "utf8"));
for (const [number, plan] of talks.entries()) await talk(plan, number);
