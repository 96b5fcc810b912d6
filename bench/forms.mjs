// Messages in the forms of peers written for Node, and where their packages are: in the working folder.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(process.cwd() + '/package.json'));
export const load = (name) => import(pathToFileURL(require.resolve(name)));

const text = (content) =>
  typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '[image]').join('\n');

/** A message in the AI SDK's form; its number is kept where a provider's options are. */
export function modelMessage(message, at) {
  const providerOptions = { bench: { at } };
  if (message.role === 'tool') {
    const output = { type: 'text', value: text(message.content) };
    const result = { type: 'tool-result', toolCallId: message.tool_call_id, toolName: message.name ?? 'tool', output };
    return { role: 'tool', content: [result], providerOptions };
  }
  if (!message.tool_calls?.length && !message.reasoning_content) {
    return { role: message.role, content: text(message.content), providerOptions };
  }
  const calls = (message.tool_calls ?? []).map((call) => ({
    type: 'tool-call', toolCallId: call.id, toolName: call.function.name, input: JSON.parse(call.function.arguments),
  }));
  const reasoning = message.reasoning_content ? [{ type: 'reasoning', text: message.reasoning_content }] : [];
  const said = text(message.content) ? [{ type: 'text', text: text(message.content) }] : [];
  return { role: 'assistant', content: [...reasoning, ...said, ...calls], providerOptions };
}

/** A message in the form that the AI SDK hands to a model. */
export function promptMessage(message, at) {
  const { role, content, providerOptions } = modelMessage(message, at);
  const isWhole = role === 'system' || Array.isArray(content);
  return { role, content: isWhole ? content : [{ type: 'text', text: content }], providerOptions };
}

/** What TokenLimiter makes of a prompt; it hands back nothing where all of it may stay. */
export async function limited(limiter, prompt) {
  return (await limiter.processLLMRequest({ prompt }))?.prompt ?? prompt;
}
