"""What it takes to have it: size, start, and memory with many conversations open, beside LiteLLM's proxy."""
import http.client
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from measure import Part, say, spread, table, times_text

STARTS = 20
SERVER_STARTS = 3
CONVERSATIONS = 1_000
CONVERSATIONS_QUICK = 50
CALLS = 3
START_SECONDS_MAX = 240
SETTLING_SECONDS = 2


def footprint(peers, folder):
    recto = peers.options.recto
    stripped = os.path.join(folder, "stripped")
    shutil.copy(recto, stripped)
    subprocess.run(["strip", stripped], check=True)
    facts = {"built_mb": os.path.getsize(recto) / 1e6, "stripped_mb": os.path.getsize(stripped) / 1e6}
    facts["start"] = spread([started([recto, "--version"]) / started(["/bin/true"]) for _ in range(STARTS)])
    say("footprint: sizes and starts are measured")
    provider = Provider()
    count = CONVERSATIONS_QUICK if peers.options.quick else CONVERSATIONS
    try:
        facts |= serving(recto, folder, provider.url, count)
    finally:
        provider.shutdown()
    told = table(["", "Recto", "LiteLLM's proxy"], rows(facts, count))
    return Part("Footprint", text(count) + told, facts, losses(facts))


def serving(recto, folder, provider, count):
    """Starts of both servers in turns, then the memory of each."""
    litellm = os.environ.get("RECTO_LITELLM")
    servers = {"recto": lambda: Recto(recto, folder, provider)}
    if litellm:
        servers["litellm"] = lambda: LiteLlm(litellm, folder, provider)
    waited, memory = {name: [] for name in servers}, {}
    for at in range(SERVER_STARTS):
        for name, start in list(servers.items()):
            try:
                server = start()
            except RuntimeError as error:
                if name == "recto":
                    raise
                say(f"footprint: goes on without {name}: {error}")
                del servers[name]
                continue
            waited[name].append(server.seconds)
            try:
                if at == SERVER_STARTS - 1:
                    memory[name] = remembered(server, count)
            finally:
                server.end()
    say("footprint: servers are measured")
    ratios = [theirs / ours for ours, theirs in zip(waited["recto"], waited.get("litellm", []))]
    return {"memory": memory, "server_start": spread(ratios) if ratios else None}


def remembered(server, count):
    """Memory before anybody has asked, after one conversation, and with all of them."""
    fresh = server.resident_mb()
    converse(server.port, 0)
    first = server.resident_mb()
    for number in range(1, count):
        converse(server.port, number)
    time.sleep(SETTLING_SECONDS)
    return {"fresh": fresh, "first": first, "all": server.resident_mb()}


def converse(port, number):
    """A conversation of a few calls; each sends all that was said."""
    messages = [{"role": "system", "content": "You are an agent that reads files, and says what is in them."}]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for call in range(CALLS):
        words = f"Look at file {call} of {number}, please. " + "It is about values and buffers. " * 10
        messages.append({"role": "user", "content": words})
        connection.request("POST", "/v1/chat/completions", json.dumps({"model": "gpt-4o", "messages": messages}),
                           {"content-type": "application/json", "authorization": "Bearer none"})
        answer = connection.getresponse()
        told = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {told[:300]}")
        messages.append({"role": "assistant", "content": json.loads(told)["choices"][0]["message"]["content"]})
    connection.close()


class Provider(ThreadingHTTPServer):
    """Whoever answers behind the servers; always the same."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answering)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        said = {"role": "assistant", "content": "It reads a value from a buffer, and says what it found. " * 5}
        body = json.dumps({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1_790_000_000, "model": "gpt-4o",
            "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 60, "total_tokens": 160}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing: there are thousands."""


class Serving:
    """A server that runs until it is ended, and how long it took until it answered."""

    def __init__(self, command, port, alive, **environment):
        begin = time.perf_counter()
        self.port = port
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env={**os.environ, **environment})
        while not answers(port, alive):
            if self.process.poll() is not None or time.perf_counter() - begin > START_SECONDS_MAX:
                self.end()
                raise RuntimeError(f"{command[0]} did not start")
            # Often enough to tell, and rarely enough not to be in its way.
            time.sleep(max(0.001, (time.perf_counter() - begin) / 100))
        self.seconds = time.perf_counter() - begin

    def resident_mb(self):
        """Of the process and those that it started."""
        return sum(resident_kib(process) for process in family(self.process.pid)) * 1024 / 1e6

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Recto(Serving):
    """Between a client and the provider, with a store of its own and the usual policy."""

    def __init__(self, command, folder, provider):
        config, port = os.path.join(folder, "recto.toml"), free_port()
        with open(config, "w", encoding="utf-8") as out:
            out.write(f"[upstream.bench]\nurl = '{provider}/v1'\nwire = 'openai_chat'\nmodels = ['*']\n")
        store = os.path.join(folder, f"served-{port}.db")
        command = [command, "--config", config, "serve", "--listen", f"127.0.0.1:{port}", "--store", store]
        super().__init__(command, port, "/ready")


class LiteLlm(Serving):
    """The same with LiteLLM's proxy."""

    def __init__(self, command, folder, provider):
        config = os.path.join(folder, "litellm.yaml")
        with open(config, "w", encoding="utf-8") as out:
            out.write("model_list:\n- model_name: gpt-4o\n  litellm_params:\n    model: openai/gpt-4o\n"
                      f"    api_base: {provider}/v1\n    api_key: none\n")
        port = free_port()
        super().__init__([command, "--config", config, "--host", "127.0.0.1", "--port", str(port)], port,
                         "/health/liveliness", LITELLM_LOG="ERROR", LITELLM_LOCAL_MODEL_COST_MAP="True")


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def answers(port, path):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False


def resident_kib(process):
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("VmRSS:")), 0)
    except FileNotFoundError:
        return 0


def family(process):
    """A process and all below it."""
    out = [process]
    for at in out:
        try:
            for thread in os.listdir(f"/proc/{at}/task"):
                with open(f"/proc/{at}/task/{thread}/children", encoding="ascii") as file:
                    out += map(int, file.read().split())
        except FileNotFoundError:
            continue
    return out


def started(command):
    """The quickest of three starts: whatever else goes on only makes them longer."""
    def once():
        begin = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - begin
    return min(once() for _ in range(3))


def rows(facts, count):
    memory = lambda name, when: f"{facts['memory'][name][when]:,.1f} MB" if name in facts["memory"] else "not measured"
    start = times_text(facts["server_start"]) + " Recto's" if facts["server_start"] else "not measured"
    return [["the command, as it is built", f"{facts['built_mb']:.1f} MB", ""],
            ["the command, stripped", f"{facts['stripped_mb']:.1f} MB", ""],
            ["a start of the command, beside `/bin/true`", times_text(facts["start"]), ""],
            ["a start of the server, until it answers", "1 ×", start],
            ["memory, before anybody asks", memory("recto", "fresh"), memory("litellm", "fresh")],
            ["memory, after one conversation", memory("recto", "first"), memory("litellm", "first")],
            [f"memory, with {count:,} conversations", memory("recto", "all"), memory("litellm", "all")]]


def text(count):
    return (f"Memory is what is resident (`VmRSS`) of all processes of a server, before and after {count:,} "
            f"conversations of {CALLS} calls each; Recto keeps all of them in its store, under its usual policy, "
            "LiteLLM passes them on. Servers are started in turns.\n\n")


def losses(facts):
    memory = facts["memory"]
    if "litellm" in memory:
        for when in ("fresh", "all"):
            if memory["litellm"][when] < memory["recto"][when]:
                theirs, ours = (memory[name][when] for name in ("litellm", "recto"))
                yield f"memory ({when}): LiteLLM has {theirs:.1f} MB, Recto {ours:.1f} MB"
        if facts["server_start"][0] < 1:
            yield f"start of the server: LiteLLM takes {times_text(facts['server_start'])} Recto's time"
