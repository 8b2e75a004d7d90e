"""The encoder and tokenizer of a Hugging Face directory, by Transformers and PEFT.

synthetic.py has the same functions without them.
"""

import os


def load_tokenizer(directory):
    """A function from a list of texts to (input_ids, attention_mask), both [texts, tokens]."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from transformers import BertTokenizerFast

    tokenizer = BertTokenizerFast.from_pretrained(directory)

    def tokenize(texts):
        encoded = tokenizer(texts, padding=True, return_tensors="pt")
        return encoded["input_ids"], encoded["attention_mask"]

    return tokenize


def load_encoder(directory, adapter_rank, adapter_scale, seed):
    """(frozen BF16 encoder with fresh float32 adapters from `seed`, its hidden size)."""
    import torch
    import transformers
    from peft import LoraConfig, get_peft_model

    # It warns of the pooler, which mean pooling does without.
    transformers.logging.set_verbosity_error()
    encoder = transformers.BertModel.from_pretrained(directory, add_pooling_layer=False)
    hidden_size = encoder.config.hidden_size
    torch.manual_seed(seed)
    adapters = LoraConfig(
        r=adapter_rank,
        lora_alpha=adapter_scale * adapter_rank,
        lora_dropout=0.0,
        target_modules=["query", "key", "value", "dense"],
    )
    encoder = get_peft_model(encoder.bfloat16(), adapters)
    # Adapters train in float32; the frozen base computes in BF16.
    for parameter in encoder.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    return encoder, hidden_size
