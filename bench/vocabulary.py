#!/usr/bin/env python3
"""Writes a vocabulary of ranked tokens in the form that Hugging Face's tokenizers read.

    vocabulary.py RANKS.json OUT.json

A vocabulary by ranks doesn't say which two tokens make a third; encoding the third with the ranks below its own tells.
"""
import base64
import json
import sys

PATTERN = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+",
])


def letters():
    """The letter that stands for each byte in such files."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + at) for at, byte in enumerate(others)}


def parts(token, ranks):
    """The two tokens that a token is made of last."""
    pieces = [bytes([byte]) for byte in token]
    while len(pieces) > 2:
        merged = [ranks.get(pieces[at] + pieces[at + 1], 1 << 60) for at in range(len(pieces) - 1)]
        at = merged.index(min(merged))
        pieces[at:at + 2] = [pieces[at] + pieces[at + 1]]
    return pieces


def main():
    source, out = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        tokens = [base64.b64decode(token) for token in json.load(file)]
    ranks = {token: rank for rank, token in enumerate(tokens)}
    spelled = letters()
    spell = lambda token: "".join(spelled[byte] for byte in token)
    merges = [[spell(piece) for piece in parts(token, Below(ranks, rank))]
              for rank, token in enumerate(tokens) if len(token) > 1]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": True,
             "vocab": {spell(token): rank for rank, token in enumerate(tokens)}, "merges": merges}
    split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                 "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]}, "post_processor": None,
                 "decoder": None, "model": model}
    with open(out, "w", encoding="utf-8") as file:
        json.dump(tokenizer, file)


class Below:
    """Ranks below one."""

    def __init__(self, ranks, below):
        self.ranks, self.below = ranks, below

    def get(self, token, otherwise):
        rank = self.ranks.get(token, otherwise)
        return rank if rank < self.below else otherwise


if __name__ == "__main__":
    main()
