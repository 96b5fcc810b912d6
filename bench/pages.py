#!/usr/bin/env python3
"""Replays recorded conversations through the code of peers written in Python, and writes what each would have sent.

    pages.py JOB    a JSON object: peer, budget, conversations (a file, one a line), out; with questions, see below

Every message goes in by its number, and what comes out is written as it was recorded, but for what the peer changed: so
a page has all that the peer keeps, in whatever form it keeps it. With "questions" the whole conversation is the
history, and each question of `meta.qa` comes after what the peer keeps of it.
"""
import json
import sys


class Trim:
    """LangChain's trim_messages with its own estimate, from the newest back. It may also begin at an answer: agents
    work long on what their user said once, and to begin at the user's words, as is usual, would leave nothing."""

    def __init__(self, budget):
        self.budget, self.messages = budget, []

    def add(self, at, message):
        self.messages.append(langchain_message(at, message))

    def page(self):
        from langchain_core.messages import trim_messages
        kept = trim_messages(self.messages, max_tokens=self.budget, token_counter="approximate", strategy="last",
                             include_system=True, start_on=("human", "ai"))
        return [(int(message.id), None) for message in kept]


class ContextEditing(Trim):
    """LangChain's ClearToolUsesEdit: once history passes the budget, all results but three become placeholders."""

    def page(self):
        from langchain.agents.middleware import ClearToolUsesEdit
        from langchain_core.messages.utils import count_tokens_approximately
        edited = list(self.messages)
        ClearToolUsesEdit(trigger=self.budget).apply(edited, count_tokens=count_tokens_approximately)
        return [(int(new.id), None if new is old else new.content) for old, new in zip(self.messages, edited)]


class Buffer:
    """LlamaIndex's ChatMemoryBuffer.get. Instructions are no part of its memory: an agent puts them in front."""

    def __init__(self, budget):
        from llama_index.core.memory import ChatMemoryBuffer
        self.system = []
        self.memory = ChatMemoryBuffer.from_defaults(token_limit=budget, tokenizer_fn=four_bytes)

    def add(self, at, message):
        from llama_index.core.base.llms.types import ChatMessage
        if at == 0 and message["role"] == "system":
            self.system.append((at, None))
        else:
            self.memory.put(ChatMessage(role=message["role"], content=text(message), additional_kwargs={"at": at}))

    def page(self):
        return self.system + [(message.additional_kwargs["at"], None) for message in self.memory.get()]


def four_bytes(words):
    """Something that is as long as a text has tokens, by four bytes each."""
    return range((len(words.encode()) + 3) // 4)


def langchain_message(at, message):
    from langchain_core.messages import convert_to_messages
    fields = {key: message[key] for key in ("role", "tool_calls", "tool_call_id", "name") if message.get(key)}
    converted = convert_to_messages([{**fields, "content": message.get("content") or ""}])[0]
    converted.id = str(at)
    return converted


def text(message):
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "[image]") for part in content)


PEERS = {"langchain trim_messages": Trim, "langchain context editing": ContextEditing, "llama-index memory": Buffer}


def written(page, messages, told):
    """The messages of a page as JSON; each was made once."""
    return [told[at] if changed is None else json.dumps({**messages[at], "content": changed}) for at, changed in page]


def calls(job, conversation):
    """The page before each answer."""
    messages, turn = conversation["messages"], 0
    told, peer = [json.dumps(message) for message in messages], PEERS[job["peer"]](job["budget"])
    for at, message in enumerate(messages):
        if message["role"] == "assistant":
            if at > 0:
                yield {"turn": turn}, written(peer.page(), messages, told)
            turn += 1
        peer.add(at, message)


def questions(job, conversation):
    """The page for each question, behind the whole conversation."""
    messages = conversation["messages"]
    told, peer = [json.dumps(message) for message in messages], PEERS[job["peer"]](job["budget"])
    for at, message in enumerate(messages):
        peer.add(at, message)
    page = written(peer.page(), messages, told)
    for at, asked in enumerate(conversation["meta"].get("qa", [])):
        question = json.dumps({"role": "user", "content": asked["question"]})
        yield {"question": at, "budget": job["budget"]}, [*page, question]


def main():
    job = json.loads(sys.argv[1])
    pages = questions if job.get("questions") else calls
    with open(job["conversations"], encoding="utf-8") as file, open(job["out"], "a", encoding="utf-8") as out:
        for line in file:
            conversation = json.loads(line)
            for which, page in pages(job, conversation):
                head = json.dumps({"conversation": conversation["id"], **which})
                out.write(f"{head[:-1]}, \"messages\": [{','.join(page)}]}}\n")


if __name__ == "__main__":
    main()
