"""Agents written with LangChain, the OpenAI Agents SDK and Pydantic AI, as their documentation writes one.

Reads a JSON object from stdin: framework (langchain, openai_agents or pydantic_ai) and talks, a list of what agent.py
reads. Has one talk after the other, and writes a line of JSON for everything that it is told of the model's answers, with
the number of the talk, and without the ids and times that a framework makes up itself. frameworks.mjs is the same for
the Vercel AI SDK.
"""

import asyncio
import json
import sys

KEY = "sk-test"
CALLS_MAX = 40
OUTPUT_TOKENS_MAX = 4096
SECONDS_MAX = 60


def found(name, argument, value):
    """Answers a call: the same for the same arguments, and long enough to be worth a cache."""
    return "\n".join([f"FOUND-{name}-{value}.", *(f"{number}: {argument} {value}" for number in range(40))])


def read_file(path: str) -> str:
    """Reads a file."""
    return found("read_file", "path", path)


def list_folder(folder: str) -> str:
    """Lists the files of a folder."""
    return found("list_folder", "folder", folder)


talk = 0


def tell(**saw):
    print(json.dumps({"talk": talk, **saw}, default=str, sort_keys=True), flush=True)


def openai_client(plan):
    import openai

    return openai.AsyncOpenAI(api_key=KEY, base_url=plan["base_url"] + "/v1", max_retries=0, timeout=SECONDS_MAX)


async def langchain(plan):
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage

    middleware = []
    if plan["wire"] == "anthropic":
        from langchain_anthropic import ChatAnthropic
        from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware

        middleware = [AnthropicPromptCachingMiddleware()]
        model = ChatAnthropic(
            model=plan["model"], api_key=KEY, base_url=plan["base_url"], max_tokens=OUTPUT_TOKENS_MAX, max_retries=0,
            timeout=SECONDS_MAX, thinking={"type": "adaptive", "display": "summarized"},
        )
    else:
        from langchain_openai import ChatOpenAI

        options = {"stream_usage": True}
        if plan["wire"] == "openai_responses":
            options = {
                "use_responses_api": True, "store": False, "include": ["reasoning.encrypted_content"],
                "reasoning": {"summary": "auto"}, "output_version": "responses/v1",
            }
        model = ChatOpenAI(
            model=plan["model"], api_key=KEY, base_url=plan["base_url"] + "/v1", max_retries=0, timeout=SECONDS_MAX,
            **options,
        )
    agent = create_agent(model, tools=[read_file, list_folder], system_prompt=plan["system"], middleware=middleware)
    limit = {"recursion_limit": CALLS_MAX}

    def told(message):
        return {"content": message.content, "calls": message.tool_calls, "usage": message.usage_metadata}

    async def ask(history):
        if not plan["streams"]:
            return (await agent.ainvoke({"messages": history}, limit))["messages"]
        state = None
        async for kind, value in agent.astream({"messages": history}, limit, stream_mode=["messages", "values"]):
            if kind == "values":
                state = value
            elif isinstance(value[0], AIMessage):
                chunk = value[0]
                tell(chunk=chunk.content, calls=getattr(chunk, "tool_call_chunks", None))
        return state["messages"]

    history = []
    for words in plan["words"]:
        history.append({"role": "user", "content": words})
        before = len(history)
        history = await ask(history)
        for message in history[before:]:
            if isinstance(message, AIMessage):
                tell(reply=told(message))


async def openai_agents(plan):
    from agents import (
        Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool,
        set_tracing_disabled,
    )

    # It would send what was said to OpenAI by itself.
    set_tracing_disabled(True)
    client = openai_client(plan)
    if plan["wire"] == "openai_responses":
        from openai.types.shared import Reasoning

        model = OpenAIResponsesModel(model=plan["model"], openai_client=client)
        settings = ModelSettings(
            store=False, response_include=["reasoning.encrypted_content"], reasoning=Reasoning(summary="auto")
        )
    else:
        model = OpenAIChatCompletionsModel(model=plan["model"], openai_client=client)
        settings = ModelSettings(include_usage=True)
    tools = [function_tool(read_file), function_tool(list_folder)]
    agent = Agent(name="files", instructions=plan["system"], tools=tools, model=model, model_settings=settings)
    history = []
    for words in plan["words"]:
        history.append({"role": "user", "content": words})
        if plan["streams"]:
            result = Runner.run_streamed(agent, history, max_turns=CALLS_MAX)
            async for event in result.stream_events():
                if event.type == "raw_response_event" and "delta" in event.data.type:
                    tell(event=event.data.type, delta=getattr(event.data, "delta", None))
        else:
            result = await Runner.run(agent, history, max_turns=CALLS_MAX)
        for response in result.raw_responses:
            output = [item.model_dump(mode="json", warnings=False) for item in response.output]
            tell(reply=output, usage=vars(response.usage), answer=result.final_output)
        history = result.to_input_list()


async def pydantic_ai(plan):
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse

    if plan["wire"] == "anthropic":
        import anthropic
        from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
        from pydantic_ai.providers.anthropic import AnthropicProvider

        client = anthropic.AsyncAnthropic(api_key=KEY, base_url=plan["base_url"], max_retries=0, timeout=SECONDS_MAX)
        model = AnthropicModel(plan["model"], provider=AnthropicProvider(anthropic_client=client))
        settings = AnthropicModelSettings(
            max_tokens=OUTPUT_TOKENS_MAX, anthropic_cache_instructions=True, anthropic_cache_messages=True,
            anthropic_thinking={"type": "adaptive", "display": "summarized"},
        )
    else:
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel, OpenAIResponsesModelSettings
        from pydantic_ai.providers.openai import OpenAIProvider

        provider = OpenAIProvider(openai_client=openai_client(plan))
        if plan["wire"] == "openai_responses":
            model = OpenAIResponsesModel(plan["model"], provider=provider)
            settings = OpenAIResponsesModelSettings(openai_reasoning_summary="auto", openai_store=False)
        else:
            model, settings = OpenAIChatModel(plan["model"], provider=provider), None
    agent = Agent(model, instructions=plan["system"], tools=[read_file, list_folder], model_settings=settings)

    async def hear(_, events):
        async for event in events:
            if event.event_kind in ("part_start", "part_delta"):
                part = getattr(event, "part", None) or event.delta
                tell(event=event.event_kind, content=getattr(part, "content", None) or getattr(part, "content_delta", None))

    history = []
    for words in plan["words"]:
        heard = hear if plan["streams"] else None
        result = await agent.run(words, message_history=history, event_stream_handler=heard)
        for message in result.new_messages():
            if isinstance(message, ModelResponse):
                parts = [(part.part_kind, getattr(part, "content", None), getattr(part, "args", None),
                          getattr(part, "tool_call_id", None)) for part in message.parts]
                tell(reply=parts, usage=vars(message.usage), id=message.provider_response_id)
        history = result.all_messages()


async def main():
    global talk
    given = json.load(sys.stdin)
    frameworks = {"langchain": langchain, "openai_agents": openai_agents, "pydantic_ai": pydantic_ai}
    for talk, plan in enumerate(given["talks"]):
        await frameworks[given["framework"]](plan)


asyncio.run(main())
