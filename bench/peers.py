#!/usr/bin/env python3
"""Peers written in Python, as workers of bench/run.py. Each uses the peer's own code as its documentation shows it.

    peers.py NAME    reads one JSON object a line: {"task": …} prepares, {"measure": COUNT} is answered with times;
                     who counts is given another text by {"text": PATH}, and writes its ids by {"ids": PATH}
"""
import copy
import json
import os
import sys
import time


def words(number):
    """What is said in a message; the same for every peer."""
    return f"message {number} " + "lorem ipsum dolor " * 44


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def history(path):
    return json.loads(read(path))["messages"]


def langchain_messages(messages):
    from langchain_core.messages import convert_to_messages
    return convert_to_messages(messages)


def langchain_trim(task):
    """trim_messages with its own estimate of tokens, from the newest back."""
    from langchain_core.messages import trim_messages
    messages = langchain_messages(history(task["file"]))

    def run():
        kept = trim_messages(messages, max_tokens=task["budget"], token_counter="approximate", strategy="last",
                             include_system=True, start_on="human")
        return {"messages": len(kept)}
    return run


def langchain_context_editing(task):
    """What ContextEditingMiddleware does before a model call: a deep copy, then old results become placeholders."""
    from langchain.agents.middleware import ClearToolUsesEdit
    from langchain_core.messages.utils import count_tokens_approximately
    messages = langchain_messages(history(task["file"]))
    edit = ClearToolUsesEdit(trigger=task["budget"])

    def run():
        edited = copy.deepcopy(messages)
        edit.apply(edited, count_tokens=count_tokens_approximately)
        return {"messages": len(edited), "honours_budget": count_tokens_approximately(edited) <= task["budget"]}
    return run


def llama_index_memory(task):
    """ChatMemoryBuffer.get: the newest messages within a limit of tokens, from words of the user on. It counts texts
    only, no calls; instructions are no part of it. Its own tokenizer would read everything anew for each message that
    is dropped, so it has the cheapest estimate there is instead: four characters a token, as LangChain has."""
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import ChatMemoryBuffer
    messages = [ChatMessage(role=message["role"], content=message.get("content") or "")
                for message in history(task["file"]) if message["role"] != "system"]
    memory = ChatMemoryBuffer.from_defaults(chat_history=messages, token_limit=task["budget"],
                                            tokenizer_fn=lambda text: range(len(text) // 4))

    def run():
        return {"messages": len(memory.get())}
    return run


def agents_session_read(task):
    """SQLiteSession.get_items: everything, since it knows no budget."""
    import asyncio
    from agents import SQLiteSession
    session = SQLiteSession("bench", os.path.join(task["folder"], f"agents-{task['messages']}.db"))
    loop = asyncio.new_event_loop()
    loop.run_until_complete(session.add_items(history(task["file"])))

    def run():
        return {"messages": len(loop.run_until_complete(session.get_items()))}
    return run


def semantic_kernel_truncation(task):
    """ChatHistoryTruncationReducer: so many messages, whatever they cost. The other reducer, by summaries, asks a
    model, and its time would be the model's."""
    import asyncio
    from semantic_kernel.contents import ChatHistoryTruncationReducer, ChatMessageContent, AuthorRole
    loop = asyncio.new_event_loop()
    texts = [(AuthorRole(message["role"]), message.get("content") or "")
             for message in history(task["file"]) if message["role"] in ("user", "assistant")]
    messages = [ChatMessageContent(role=role, content=text) for role, text in texts]

    def run():
        reducer = ChatHistoryTruncationReducer(target_count=500, threshold_count=0, messages=list(messages))
        reduced = loop.run_until_complete(reducer.reduce())
        return {"messages": len((reduced or reducer).messages)}
    return run


def agents_session_write(task):
    """SQLiteSession.add_items: two messages."""
    import asyncio
    from agents import SQLiteSession
    path = os.path.join(task["folder"], "agents.db")
    session = SQLiteSession("bench", path)
    loop = asyncio.new_event_loop()
    number = 0

    def turn():
        nonlocal number
        items = [{"role": "user", "content": words(number)}, {"role": "assistant", "content": words(number + 1)}]
        number += 2
        loop.run_until_complete(session.add_items(items))
    while number < task["messages"]:
        turn()

    def run():
        turn()
        return on_disk()
    return run


def langgraph_checkpoint(task):
    """A step of a graph whose state is the list of messages, kept by SqliteSaver."""
    import sqlite3
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import START, MessagesState, StateGraph
    path = os.path.join(task["folder"], "langgraph.db")
    saver = SqliteSaver(sqlite3.connect(path, check_same_thread=False))
    number = 0

    def answer(_state):
        return {"messages": [AIMessage(words(number + 1))]}
    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "bench"}}
    # What came before is one step: that makes the peer's history as cheap as it can be.
    before = [kind(words(at)) for at in range(0, task["messages"], 2) for kind in (HumanMessage, AIMessage)]
    graph.update_state(config, {"messages": before})

    def run():
        nonlocal number
        graph.invoke({"messages": [HumanMessage(words(number))]}, config)
        number += 2
        return on_disk()
    return run


def tokenizers_count(task):
    """Hugging Face's tokenizers, over the same vocabulary."""
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(task["vocabulary"])
    ids = lambda: tokenizer.encode(run.text, add_special_tokens=False).ids

    def run():
        return {"tokens": len(ids())}
    run.text, run.ids = read(task["file"]), ids
    return run


def on_disk():
    """What this process has handed to the system to write."""
    with open("/proc/self/io", encoding="ascii") as file:
        written = next(int(line.split()[1]) for line in file if line.startswith("wchar"))
    return {"written": written}


PEERS = {
    ("langchain trim_messages", "compile"): langchain_trim,
    ("langchain context editing", "compile"): langchain_context_editing,
    ("llama-index memory", "compile"): llama_index_memory,
    ("openai-agents session", "compile"): agents_session_read,
    ("semantic-kernel truncation", "compile"): semantic_kernel_truncation,
    ("openai-agents session", "store"): agents_session_write,
    ("langgraph checkpointer", "store"): langgraph_checkpoint,
    ("tokenizers", "count"): tokenizers_count,
}


def main():
    name, run = sys.argv[1], None
    for line in sys.stdin:
        asked = json.loads(line)
        if "task" in asked:
            run = PEERS[name, asked["task"]](asked)
            answer = {"ready": name}
        elif "text" in asked:
            run.text = read(asked["text"])
            answer = {"read": name}
        elif "ids" in asked:
            with open(asked["ids"], "w", encoding="ascii") as file:
                json.dump(run.ids(), file)
            answer = {"written": name}
        else:
            seconds, came = [], None
            for _ in range(asked["measure"]):
                start = time.perf_counter()
                came = run()
                seconds.append(time.perf_counter() - start)
            answer = {"seconds": seconds, "came": came}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
