"""A small random BERT directory, with its tokenizer and encoder in plain torch: for machines
without a network, beside Debian's torch nothing is needed.

pretrained.py has the same functions for real weights.
"""

import re

import torch
from torch import nn

import bert
import hf_directory
import lora

_PADDING, _UNKNOWN, _BEGIN, _END = _SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_TOKENS_MAX = 128
# What BERT starts from before it is trained.
_WEIGHT_DEVIATION = 0.02


def make_model(directory, texts, seed):
    """Writes a two-layer BERT and a vocabulary of the texts' words into `directory`."""
    vocabulary = [*_SPECIAL_TOKENS, *sorted({word for text in texts for word in _words(text)})]
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": len(vocabulary),
        "type_vocab_size": 2,
        "max_position_embeddings": _TOKENS_MAX,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 256,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "torch_dtype": "float32",
    }
    model = bert.Bert(config)
    # A BertModel has a pooler, which the task does not use.
    hidden = config["hidden_size"]
    model.pooler = nn.ModuleDict({"dense": nn.Linear(hidden, hidden)})
    torch.manual_seed(seed)
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=_WEIGHT_DEVIATION)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
    hf_directory.write_model(directory, config, model.state_dict())
    (directory / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")


def load_tokenizer(directory):
    """A function from a list of texts to (input_ids, attention_mask), both [texts, tokens]."""
    vocabulary = (directory / "vocab.txt").read_text(encoding="utf-8").splitlines()
    ids = {token: number for number, token in enumerate(vocabulary)}

    def tokenize(texts):
        rows = []
        for text in texts:
            tokens = [_BEGIN, *_words(text)[: _TOKENS_MAX - 2], _END]
            rows.append(torch.tensor([ids.get(token, ids[_UNKNOWN]) for token in tokens]))
        input_ids = nn.utils.rnn.pad_sequence(rows, True, padding_value=ids[_PADDING])
        return input_ids, (input_ids != ids[_PADDING]).long()

    return tokenize


def load_encoder(directory, adapter_rank, adapter_scale, seed):
    """(frozen BF16 encoder with fresh float32 adapters from `seed`, its hidden size)."""
    config = hf_directory.read_config(directory)
    encoder = bert.Bert(config)
    tensors = hf_directory.read_tensors(directory)
    encoder.load_state_dict({n: t for n, t in tensors.items() if not n.startswith("pooler.")})
    encoder.bfloat16()
    torch.manual_seed(seed)
    lora.add_adapters(encoder, adapter_rank, adapter_scale)
    return encoder, config["hidden_size"]


def _words(text):
    return re.findall(r"[a-z]+|[^\sa-z]", text.lower())
