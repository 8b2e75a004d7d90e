"""A small random BERT directory, for machines without a network: config.json, weights in
F32 safetensors, and a vocabulary made of the task's own words."""

import json
import re

import torch


def make_model(directory, texts, seed):
    """Writes a two-layer BERT and its tokenizer into `directory`."""
    from transformers import BertConfig, BertModel

    tokens = re.compile(r"[a-z]+|[^\sa-z]")
    words = sorted({word for text in texts for word in tokens.findall(text.lower())})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    (directory / "tokenizer_config.json").write_text(
        json.dumps({"do_lower_case": True, "tokenizer_class": "BertTokenizer"})
    )
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=128,
    )
    config.architectures = ["BertModel"]
    BertModel(config).save_pretrained(directory, safe_serialization=True)
