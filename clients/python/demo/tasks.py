"""The text task: which team does a request go to? And the training loop for it.

The same loop trains the local and the remote model: a BERT encoder with LoRA adapters, mean
pooling, and a linear head.
"""

import csv
import random
from dataclasses import dataclass

import torch
from torch import nn

LORA_RANK = 8
LORA_SCALE = 2
BATCH = 16
HELD_OUT = 1 / 3


@dataclass(frozen=True)
class Schedule:
    epochs: int
    learning_rate: float


# A pretrained encoder needs little; a random one has to learn the words themselves.
PRETRAINED = Schedule(epochs=5, learning_rate=1e-3)
RANDOM = Schedule(epochs=12, learning_rate=3e-3)


def load_tickets(path, seed):
    """([(text, label)] for training, the same held out, class names); classes stay balanced."""
    by_class = {}
    with open(path, newline="", encoding="utf-8") as file:
        for label, text in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            by_class.setdefault(label, []).append(text)
    names = sorted(by_class)
    shuffle = random.Random(seed)
    train, held_out = [], []
    for number, name in enumerate(names):
        texts = by_class[name]
        shuffle.shuffle(texts)
        cut = round(len(texts) * HELD_OUT)
        held_out += [(text, number) for text in texts[:cut]]
        train += [(text, number) for text in texts[cut:]]
    return train, held_out, names


def majority_accuracy(train, held_out):
    """Of a classifier that always names the most frequent class of the training set."""
    labels = [label for _, label in train]
    guess = max(set(labels), key=labels.count)
    return sum(label == guess for _, label in held_out) / len(held_out)


class Classifier(nn.Module):
    """Mean-pooled encoder outputs, then a linear head in float32."""

    def __init__(self, encoder, hidden_size, class_count):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(hidden_size, class_count)

    def forward(self, input_ids, attention_mask):
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        pooled = (states * mask).sum(1) / mask.sum(1)
        return self.head(pooled.float())


def make_classifier(weights, model_directory, class_count, seed):
    """A classifier over the encoder of `weights`, the module pretrained or synthetic."""
    encoder, hidden_size = weights.load_encoder(model_directory, LORA_RANK, LORA_SCALE, seed)
    return Classifier(encoder, hidden_size, class_count)


def batches(examples, tokenize, order):
    """(input_ids, attention_mask, labels) in steps of BATCH."""
    for start in range(0, len(order), BATCH):
        chosen = [examples[i] for i in order[start : start + BATCH]]
        input_ids, mask = tokenize([text for text, _ in chosen])
        yield input_ids, mask, torch.tensor([label for _, label in chosen])


@torch.no_grad()
def accuracy(classifier, examples, tokenize):
    classifier.eval()
    right = 0
    for input_ids, mask, labels in batches(examples, tokenize, range(len(examples))):
        right += int((classifier(input_ids, mask).argmax(-1) == labels).sum())
    return right / len(examples)


def train(classifier, examples, tokenize, schedule, seed, on_step, end_step=None):
    """Trains adapters and head. on_step(step, steps, loss). Returns the last epoch's mean loss."""
    classifier.train()
    trainable = [p for p in classifier.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=schedule.learning_rate)
    shuffle = random.Random(seed)
    order = list(range(len(examples)))
    steps = schedule.epochs * -(-len(examples) // BATCH)
    step = 0
    for _ in range(schedule.epochs):
        shuffle.shuffle(order)
        losses = []
        for input_ids, mask, labels in batches(examples, tokenize, order):
            loss = nn.functional.cross_entropy(classifier(input_ids, mask), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if end_step:
                end_step()
            losses.append(loss.item())
            step += 1
            on_step(step, steps, losses[-1])
    return sum(losses) / len(losses)
