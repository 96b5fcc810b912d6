// An agent written with the official Node packages of OpenAI and Anthropic, as their documentation writes one. What it
// reads and writes is what agent.py does.

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { readFileSync } from "node:fs";

const KEY = "sk-test";
const CALLS_MAX = 40;
const OUTPUT_TOKENS_MAX = 4096;
const MILLISECONDS_MAX = 60_000;
const TOOLS = [
  ["read_file", "Reads a file.", "path"],
  ["list_folder", "Lists the files of a folder.", "folder"],
];

const schema = (argument) => ({
  type: "object",
  properties: { [argument]: { type: "string" } },
  required: [argument],
  additionalProperties: false,
});

// Answers a call: the same for the same arguments, and long enough to be worth a cache.
function run(name, args) {
  const [[argument, value]] = Object.entries(args);
  const lines = Array.from({ length: 40 }, (_, number) => `${number}: ${argument} ${value}`);
  return [`FOUND-${name}-${value}.`, ...lines].join("\n");
}

function tell(reply, events, requestId) {
  console.log(JSON.stringify({ reply, events, request_id: requestId ?? null }));
}

function chat(plan) {
  const client = new OpenAI({ apiKey: KEY, baseURL: `${plan.base_url}/v1`, maxRetries: 0, timeout: MILLISECONDS_MAX });
  const tools = TOOLS.map(([name, description, of]) => ({
    type: "function",
    function: { name, description, parameters: schema(of), strict: true },
  }));
  const messages = [{ role: "system", content: plan.system }];

  async function ask() {
    const request = { model: plan.model, messages, tools };
    if (!plan.streams) {
      const completion = await client.chat.completions.create(request);
      tell(completion, [], completion._request_id);
      return completion.choices[0].message;
    }
    const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
    const chunks = [];
    stream.on("chunk", (chunk) => chunks.push(structuredClone(chunk)));
    const completion = await stream.finalChatCompletion();
    tell(completion, chunks, null);
    return completion.choices[0].message;
  }

  async function step() {
    const message = await ask();
    messages.push(message);
    const calls = message.tool_calls ?? [];
    for (const call of calls) {
      const content = run(call.function.name, JSON.parse(call.function.arguments));
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
    return calls.length > 0;
  }

  return { step, say: (words) => messages.push({ role: "user", content: words }) };
}

function responses(plan) {
  const client = new OpenAI({ apiKey: KEY, baseURL: `${plan.base_url}/v1`, maxRetries: 0, timeout: MILLISECONDS_MAX });
  const tools = TOOLS.map(([name, description, of]) => ({
    type: "function", name, description, parameters: schema(of), strict: true,
  }));
  const items = [];

  async function ask() {
    const request = {
      model: plan.model, instructions: plan.system, input: items, tools,
      store: false, include: ["reasoning.encrypted_content"], reasoning: { summary: "auto" },
    };
    if (!plan.streams) {
      const response = await client.responses.create(request);
      tell(response, [], response._request_id);
      return response;
    }
    const { data: stream, request_id: id } = await client.responses.create({ ...request, stream: true }).withResponse();
    const events = [];
    for await (const event of stream) events.push(event);
    const response = events.at(-1).response;
    tell(response, events, id);
    return response;
  }

  async function step() {
    const response = await ask();
    items.push(...response.output);
    const calls = response.output.filter((item) => item.type === "function_call");
    for (const call of calls) {
      const output = run(call.name, JSON.parse(call.arguments));
      items.push({ type: "function_call_output", call_id: call.call_id, output });
    }
    return calls.length > 0;
  }

  return { step, say: (words) => items.push({ role: "user", content: words }) };
}

function messages(plan) {
  const client = new Anthropic({ apiKey: KEY, baseURL: plan.base_url, maxRetries: 0, timeout: MILLISECONDS_MAX });
  const tools = TOOLS.map(([name, description, of]) => ({ name, description, input_schema: schema(of) }));
  const mark = { type: "ephemeral" };
  const system = [{ type: "text", text: plan.system, cache_control: mark }];
  const history = [];

  // The history with a mark of the cache at its end, which moves with every call.
  function marked() {
    const last = history.at(-1);
    const content = typeof last.content === "string" ? [{ type: "text", text: last.content }] : last.content;
    const end = { ...content.at(-1), cache_control: mark };
    return [...history.slice(0, -1), { ...last, content: [...content.slice(0, -1), end] }];
  }

  async function ask() {
    const request = {
      model: plan.model, max_tokens: OUTPUT_TOKENS_MAX, system, tools, messages: marked(),
      thinking: { type: "adaptive", display: "summarized" },
    };
    if (!plan.streams) {
      const message = await client.messages.create(request);
      tell(message, [], message._request_id);
      return message;
    }
    const stream = client.messages.stream(request);
    const events = [];
    stream.on("streamEvent", (event) => events.push(structuredClone(event)));
    const message = await stream.finalMessage();
    tell(message, events, stream.request_id);
    return message;
  }

  async function step() {
    const message = await ask();
    history.push({ role: "assistant", content: message.content });
    const calls = message.content.filter((block) => block.type === "tool_use");
    if (calls.length > 0) {
      const result = (call) => ({ type: "tool_result", tool_use_id: call.id, content: run(call.name, call.input) });
      history.push({ role: "user", content: calls.map(result) });
    }
    return calls.length > 0;
  }

  return { step, say: (words) => history.push({ role: "user", content: words }) };
}

const plan = JSON.parse(readFileSync(0, "utf8"));
const { step, say } = { openai_chat: chat, openai_responses: responses, anthropic: messages }[plan.wire](plan);
let calls = 0;
for (const words of plan.words) {
  say(words);
  while (await step()) {
    calls += 1;
    if (calls > CALLS_MAX) throw new Error("the model goes on calling");
  }
}
