#!/usr/bin/env python3
"""Checks request bodies against the request types of the providers' official Python packages.

Reads lines of JSON from stdin: {"name": …, "wire": "openai_chat" | "openai_responses" | "anthropic",
"body": {…}, "expect": "ok" | "bad"}. Writes a line for each: {"name", "ok", "error"}. Ends with 1 if a body was taken
that should be refused, or the other way round.

Needs the packages openai, anthropic and pydantic; crates/recto/tests/it/python_types.rs installs and feeds it.

Where the types are not the service:
- Laxer: they know nothing of calls and their results, empty lists, patterns of names, lengths, or fields of which one
  is needed (a file of neither id nor data passes). Recto's own `validate` knows those rules.
- Laxer: a dictionary with a field that no type has passes. Here it is refused.
- Laxer: `Iterable` is looked into only when somebody walks it, and text and dictionaries can be walked too. Here it
  means a list, and is looked into at once.
- Laxer: some lists take models of responses as well, and those allow any field. A body holds no instances of models,
  only dictionaries, so here they take none.
- Laxer: a `function_call_output` need not say which call it answers. The service wants it to, and so does this check.
- Stricter: `reasoning_content` is no field of OpenAI's own. Servers that speak its Chat format take it on an
  assistant's message, so it is taken off there before the check, if it is a text.
- Stricter: Responses has a type for recordings, `input_audio`, and the service takes them in messages, but the type of
  messages doesn't list it. They are checked against their own type, and taken off before the rest is.
"""

import importlib
import json
import pkgutil
import sys
import typing

import pydantic
import pydantic_core
import typing_extensions

ERROR_CHARS_MAX = 600
PLACE_CHARS_MAX = 30


def load(package):
    """Imports all types of a package with lists in the place of lazy iterables, and nothing in that of models."""
    lazy = typing.Iterable
    typing.Iterable = typing.List
    try:
        types = importlib.import_module(f"{package}.types")
        names = [found.name for found in pkgutil.walk_packages(types.__path__, f"{package}.types.")]
        modules = [importlib.import_module(name) for name in names]
    finally:
        typing.Iterable = lazy
    model = importlib.import_module(f"{package}._models").BaseModel
    model.__get_pydantic_core_schema__ = classmethod(
        lambda cls, source, handler: pydantic_core.core_schema.is_instance_schema(cls)
    )
    for module in [types, *modules]:
        for value in vars(module).values():
            if typing_extensions.is_typeddict(value) and value.__module__.startswith(package):
                # Some fields take open files, which no body read from JSON holds.
                value.__pydantic_config__ = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def adapters():
    load("openai")
    load("anthropic")
    from anthropic.types.message_create_params import MessageCreateParams
    from openai.types.chat.completion_create_params import CompletionCreateParams
    from openai.types.responses.response_create_params import ResponseCreateParams
    from openai.types.responses.response_input_audio_param import ResponseInputAudioParam

    types = {
        "openai_chat": CompletionCreateParams,
        "openai_responses": ResponseCreateParams,
        "anthropic": MessageCreateParams,
        "audio": ResponseInputAudioParam,
    }
    return {wire: pydantic.TypeAdapter(it) for wire, it in types.items()}


def walk(value):
    """Walks what is still lazy, so that errors inside come out."""
    if isinstance(value, dict):
        for inner in value.values():
            walk(inner)
    elif not isinstance(value, (str, bytes)) and hasattr(value, "__iter__"):
        for inner in value:
            walk(inner)


def dictionaries(value):
    """Returns the dictionaries of a list; nothing, if it is none."""
    return [it for it in value if isinstance(it, dict)] if isinstance(value, list) else []


def without_extensions(wire, body, audio):
    """Takes off what a service or other servers of its format take and its types don't know."""
    if wire == "openai_chat":
        for message in dictionaries(body.get("messages")):
            if message.get("role") == "assistant" and isinstance(message.get("reasoning_content"), str):
                del message["reasoning_content"]
    if wire == "openai_responses":
        for item in dictionaries(body.get("input")):
            for part in dictionaries(item.get("content")):
                if part.get("type") == "input_audio":
                    audio.validate_python(part, strict=True)
                    item["content"] = [it for it in item["content"] if it is not part]
    return body


def unanswered(wire, body):
    """Returns where a result doesn't say what it answers, which its type allows."""
    for at, item in enumerate(dictionaries(body.get("input")) if wire == "openai_responses" else []):
        if item.get("type") == "function_call_output" and not isinstance(item.get("call_id"), str):
            return f"input.{at}.call_id: Field required by the service"
    return None


def why_refused(known, wire, body):
    """Returns what the types say against a body, or nothing."""
    try:
        walk(known[wire].validate_python(without_extensions(wire, body, known["audio"]), strict=True))
    except pydantic.ValidationError as error:
        # A union tells of every member; what lies deepest is nearest to the mistake.
        found = sorted(error.errors(include_url=False), key=lambda it: -len(it["loc"]))[:6]
        lines = (f"{'.'.join(str(step)[:PLACE_CHARS_MAX] for step in it['loc'])}: {it['msg']}" for it in found)
        return "; ".join(lines)[:ERROR_CHARS_MAX]
    return unanswered(wire, body)


def main():
    known = adapters()
    unexpected = 0
    for line in sys.stdin:
        if not line.strip():
            continue
        case = json.loads(line)
        error = why_refused(known, case["wire"], case["body"])
        unexpected += (error is None) != (case["expect"] == "ok")
        print(json.dumps({"name": case["name"], "ok": error is None, "error": error}, ensure_ascii=False))
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
