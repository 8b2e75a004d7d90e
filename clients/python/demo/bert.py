"""A BERT encoder in plain torch, whose parameters are named as in Hugging Face's files.

Not here: dropout and the pooler, which the demo's task does without.
"""

import math
from typing import NamedTuple

import torch
from torch import nn


class EncoderOutput(NamedTuple):
    """Named as Transformers names it."""

    last_hidden_state: torch.Tensor  # [texts, tokens, hidden]


def _norm(config):
    return nn.LayerNorm(config["hidden_size"], eps=config["layer_norm_eps"])


class Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden = config["hidden_size"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], hidden)
        self.position_embeddings = nn.Embedding(config["max_position_embeddings"], hidden)
        self.token_type_embeddings = nn.Embedding(config["type_vocab_size"], hidden)
        self.LayerNorm = _norm(config)

    def forward(self, input_ids):
        """[texts, tokens] → [texts, tokens, hidden], all of token type 0."""
        position = torch.arange(input_ids.shape[1])
        return self.LayerNorm(
            self.word_embeddings(input_ids)
            + self.position_embeddings(position)
            + self.token_type_embeddings.weight[0]
        )


class SelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden = config["hidden_size"]
        self.head_count = config["num_attention_heads"]
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def forward(self, states, mask):
        """mask: [texts, 1, 1, tokens], added to the scores."""

        def heads(projected):  # [texts, heads, tokens, hidden / heads]
            return projected.unflatten(-1, (self.head_count, -1)).transpose(1, 2)

        query, key, value = (heads(f(states)) for f in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        return ((scores + mask).softmax(-1) @ value).transpose(1, 2).flatten(2)


class AddedOutput(nn.Module):
    """A linear layer, whose result is added to the residual and normalised."""

    def __init__(self, in_features, config):
        super().__init__()
        self.dense = nn.Linear(in_features, config["hidden_size"])
        self.LayerNorm = _norm(config)

    def forward(self, states, residual):
        return self.LayerNorm(self.dense(states) + residual)


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, intermediate = config["hidden_size"], config["intermediate_size"]
        self.attention = nn.ModuleDict(
            {"self": SelfAttention(config), "output": AddedOutput(hidden, config)}
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(hidden, intermediate)})
        self.output = AddedOutput(intermediate, config)

    def forward(self, states, mask):
        attended = self.attention["self"](states, mask)
        states = self.attention["output"](attended, states)
        inner = nn.functional.gelu(self.intermediate["dense"](states))
        return self.output(inner, states)


class Bert(nn.Module):
    """config: the dict of config.json."""

    def __init__(self, config):
        super().__init__()
        self.embeddings = Embeddings(config)
        layers = (Layer(config) for _ in range(config["num_hidden_layers"]))
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(layers)})

    def forward(self, input_ids, attention_mask):
        """Both [texts, tokens]; the mask is 1 at tokens and 0 at padding."""
        states = self.embeddings(input_ids)
        absent = (attention_mask == 0)[:, None, None, :]
        mask = torch.zeros(absent.shape, dtype=states.dtype)
        mask = mask.masked_fill(absent, torch.finfo(states.dtype).min)
        for layer in self.encoder["layer"]:
            states = layer(states, mask)
        return EncoderOutput(states)
