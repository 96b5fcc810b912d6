"""An agent written with the official Python packages of OpenAI and Anthropic, as their documentation writes one.

Reads a JSON object from stdin: base_url (without a path), wire (openai_chat, openai_responses or anthropic), streams,
model, system and words: what its user says, one after the other, each once the one before is answered. Writes a line of
JSON for each reply: everything that it saw of it. agent.mjs is the same for Node.
"""

import json
import sys

import anthropic
import openai

KEY = "sk-test"
CALLS_MAX = 40
OUTPUT_TOKENS_MAX = 4096
SECONDS_MAX = 60
TOOLS = [
    ("read_file", "Reads a file.", "path"),
    ("list_folder", "Lists the files of a folder.", "folder"),
]


def schema(argument):
    return {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
        "additionalProperties": False,
    }


def run(name, arguments):
    """Answers a call: the same for the same arguments, and long enough to be worth a cache."""
    [(argument, value)] = arguments.items()
    return "\n".join([f"FOUND-{name}-{value}.", *(f"{number}: {argument} {value}" for number in range(40))])


def tell(reply, events, request_id):
    plain = [event.model_dump(mode="json", warnings=False) for event in events]
    print(json.dumps({"reply": reply.model_dump(mode="json", warnings=False), "events": plain, "request_id": request_id}))


def chat(plan):
    client = openai.OpenAI(api_key=KEY, base_url=plan["base_url"] + "/v1", max_retries=0, timeout=SECONDS_MAX)
    tools = [
        {"type": "function", "function": {"name": name, "description": about, "parameters": schema(of), "strict": True}}
        for name, about, of in TOOLS
    ]
    messages = [{"role": "system", "content": plan["system"]}]

    def ask():
        request = {"model": plan["model"], "messages": messages, "tools": tools}
        if not plan["streams"]:
            completion = client.chat.completions.create(**request)
            tell(completion, [], completion._request_id)
            return completion.choices[0].message
        with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
            chunks = [event.chunk for event in stream if event.type == "chunk"]
            completion = stream.get_final_completion()
            tell(completion, chunks, stream._response.headers.get("x-request-id"))
            return completion.choices[0].message

    def step():
        message = ask()
        messages.append(message)
        for call in message.tool_calls or []:
            result = run(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return bool(message.tool_calls)

    return step, lambda words: messages.append({"role": "user", "content": words})


def responses(plan):
    client = openai.OpenAI(api_key=KEY, base_url=plan["base_url"] + "/v1", max_retries=0, timeout=SECONDS_MAX)
    tools = [
        {"type": "function", "name": name, "description": about, "parameters": schema(of), "strict": True}
        for name, about, of in TOOLS
    ]
    items = []

    def ask():
        request = {"model": plan["model"], "instructions": plan["system"], "input": items, "tools": tools}
        request |= {"store": False, "include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"}}
        if not plan["streams"]:
            response = client.responses.create(**request)
            tell(response, [], response._request_id)
            return response
        with client.responses.create(**request, stream=True) as stream:
            events = list(stream)
            response = events[-1].response
            tell(response, events, stream.response.headers.get("x-request-id"))
            return response

    def step():
        response = ask()
        items.extend(response.output)
        calls = [item for item in response.output if item.type == "function_call"]
        for call in calls:
            result = run(call.name, json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
        return bool(calls)

    return step, lambda words: items.append({"role": "user", "content": words})


def messages(plan):
    client = anthropic.Anthropic(api_key=KEY, base_url=plan["base_url"], max_retries=0, timeout=SECONDS_MAX)
    tools = [{"name": name, "description": about, "input_schema": schema(of)} for name, about, of in TOOLS]
    mark = {"type": "ephemeral"}
    system = [{"type": "text", "text": plan["system"], "cache_control": mark}]
    history = []

    def marked():
        """The history with a mark of the cache at its end, which moves with every call."""
        *before, last = history
        content = last["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        return [*before, {**last, "content": [*content[:-1], {**content[-1], "cache_control": mark}]}]

    def ask():
        request = {"model": plan["model"], "max_tokens": OUTPUT_TOKENS_MAX, "system": system, "tools": tools}
        request |= {"messages": marked(), "thinking": {"type": "adaptive", "display": "summarized"}}
        if not plan["streams"]:
            message = client.messages.create(**request)
            tell(message, [], message._request_id)
            return message
        with client.messages.stream(**request) as stream:
            events = list(stream)
            message = stream.get_final_message()
            tell(message, events, stream.request_id)
            return message

    def step():
        message = ask()
        history.append({"role": "assistant", "content": message.content})
        calls = [block for block in message.content if block.type == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": run(call.name, call.input)} for call in calls
        ]
        if results:
            history.append({"role": "user", "content": results})
        return bool(calls)

    return step, lambda words: history.append({"role": "user", "content": words})


def main():
    plan = json.load(sys.stdin)
    agents = {"openai_chat": chat, "openai_responses": responses, "anthropic": messages}
    step, say = agents[plan["wire"]](plan)
    calls = 0
    for words in plan["words"]:
        say(words)
        while step():
            calls += 1
            if calls > CALLS_MAX:
                sys.exit("the model goes on calling")


main()
