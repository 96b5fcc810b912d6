"""What the figures of a run say: which targets are met, and where Recto is behind. Nothing here is typed by hand."""
from measure import number, table, times_text

COMPILE_AT = "100000"
STORE_AT = "1000"
BINARY_MB_MAX = 40


def targets(facts):
    """Each target, its figure, and whether it is met; a part that wasn't measured leaves its targets open."""
    compiled, stored = facts.get("compile", {}), facts.get("store", {})
    litellm, size = facts.get("gateway", {}).get("litellm", {}), facts.get("footprint", {})
    grown = compiled.get("growth", {}).get("recto")
    ratios = compiled.get("ratios", {})
    at_least = lambda name, value, bound: Target(name, f"≥ {bound} ×", value, lambda it: lowest(it) >= bound,
                                                 " × at least")
    at_most = lambda name, value, bound, unit: Target(name, f"≤ {bound:g}{unit}", value, lambda it: it <= bound, unit)
    rows = [
        at_least("compile, 100,000 messages: Mastra's contiguous limiter beside Recto",
                 ratios.get("mastra TokenLimiter, contiguous", {}).get(COMPILE_AT), 50),
        at_least("compile, 100,000 messages: LangChain's approximate trim beside Recto",
                 ratios.get("langchain trim_messages", {}).get(COMPILE_AT), 500),
        at_most("compile: growth exponent from 1,000 messages on", float(grown) if grown else None, 0.05, ""),
        *(Target(f"store, 1,000 messages: bytes {kind} for a message, beside the best peer's", "≤ 1 ×",
                 share(stored, kind), lambda it: it <= 1, " ×") for kind in ("written", "kept")),
        *(Target(f"store, 1,000 messages: LangGraph's bytes {kind} for a turn, beside Recto's", "≥ 100 ×",
                 beside_langgraph(stored, kind), lambda it: it >= 100, " ×") for kind in ("written", "kept")),
        at_least("gateway, small bodies: LiteLLM's processor time beside Recto's", litellm.get("small"), 70),
        at_least("gateway, large bodies: LiteLLM's processor time beside Recto's", litellm.get("long"), 100),
        at_most("binary, stripped", size.get("stripped_mb"), BINARY_MB_MAX, " MB"),
        at_most("binary, as it is built", size.get("built_mb"), BINARY_MB_MAX, " MB"),
    ]
    return table(["target", "wanted", "measured", ""], [row.cells() for row in rows])


class Target:
    def __init__(self, name, wanted, value, is_met, unit=""):
        self.name, self.wanted, self.value, self.is_met, self.unit = name, wanted, value, is_met, unit

    def cells(self):
        if self.value is None:
            return [self.name, self.wanted, "not measured", "open"]
        told = times_text(self.value) if isinstance(self.value, list) else f"{number(self.value)}{self.unit}"
        return [self.name, self.wanted, told, "met" if self.is_met(self.value) else "**missed**"]


def lowest(value):
    """The median of a ratio, or a lower bound as it is."""
    return value[0] if isinstance(value, list) else value


def share(stored, kind):
    """Recto's bytes beside those of the peer that needs least; a turn has two messages for all of them."""
    others = [own[STORE_AT][kind] for name, own in stored.items() if name != "recto"]
    return stored["recto"][STORE_AT][kind] / max(1, min(others)) if others else None


def beside_langgraph(stored, kind):
    if "langgraph checkpointer" not in stored:
        return None
    return stored["langgraph checkpointer"][STORE_AT][kind] / max(1, stored["recto"][STORE_AT][kind])


def behind(losses, missing):
    """Everything in which somebody was faster, smaller or cheaper."""
    lines = [f"- {loss}" for loss in losses] + [f"- not measured: {part}" for part in missing]
    return "\n".join(lines) or "Nowhere in this run."
