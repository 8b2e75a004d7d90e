"""attach(): what becomes remote, what stays, and what is refused."""

import unittest

import torch
from torch import nn

import planewise
from clients.python.tests.daemon_fixture import CONFIG, DOWN, HIDDEN, LINEARS, QUERY, UP, DaemonTest


class Tree(nn.Module):
    """Submodules by name, without a forward."""

    def __init__(self, /, **children):
        super().__init__()
        for name, child in children.items():
            self.add_module(name, child)


def tiny_bert():
    """The module tree of the hosted model, with its names and shapes."""

    def linear(layer):
        rows, columns = LINEARS[layer]
        return nn.Linear(columns, rows)

    attention = "encoder.layer.0.attention."
    layer = Tree(
        attention=Tree(
            self=Tree(
                query=linear(QUERY),
                key=linear(attention + "self.key"),
                value=linear(attention + "self.value"),
            ),
            output=Tree(
                dense=linear(attention + "output.dense"), LayerNorm=nn.LayerNorm(HIDDEN)
            ),
        ),
        intermediate=Tree(dense=linear(UP)),
        output=Tree(dense=linear(DOWN), LayerNorm=nn.LayerNorm(HIDDEN)),
    )
    return Tree(
        embeddings=Tree(word_embeddings=nn.Embedding(CONFIG["vocab_size"], HIDDEN)),
        encoder=Tree(layer=nn.ModuleList([layer])),
        pooler=Tree(dense=linear("pooler.dense")),
    )


class AttachTest(DaemonTest):
    def setUp(self):
        self.create("tiny", trainable=True)

    def attach(self, model, **options):
        attachment = planewise.attach(model, self.client, "tiny", **options)
        self.addCleanup(attachment.close)
        return attachment

    def test_every_hosted_layer_becomes_remote_and_its_memory_is_freed(self):
        model = tiny_bert()
        parameters = sum(p.numel() for p in model.parameters())
        linear_bytes = 4 * sum(rows * (columns + 1) for rows, columns in LINEARS.values())
        attachment = self.attach(model)
        self.assertEqual(attachment.replaced, {name: name for name in LINEARS})
        self.assertEqual(attachment.freed_bytes, linear_bytes)
        left = sum(p.numel() for p in model.parameters())
        self.assertEqual(4 * (parameters - left), linear_bytes)
        self.assertFalse([m for m in model.modules() if isinstance(m, nn.Linear)])

    def test_a_remote_layer_computes(self):
        model = tiny_bert()
        self.attach(model)
        query = model.get_submodule(QUERY)
        x = torch.randn(3, HIDDEN, requires_grad=True)
        query(x).sum().backward()
        self.assertEqual(x.grad.shape, (3, HIDDEN))
        self.assertEqual((query.in_features, query.out_features), (HIDDEN, HIDDEN))

    def test_what_stays_is_stated_with_its_reason(self):
        model = Tree(bert=tiny_bert(), classifier=nn.Linear(HIDDEN, 3))
        attachment = self.attach(model)
        norm = "bert.encoder.layer.0.output.LayerNorm.weight"
        self.assertEqual(
            attachment.local["bert.embeddings.word_embeddings.weight"], "embedding"
        )
        self.assertIn("does not host", attachment.local["classifier.weight"])
        self.assertEqual(attachment.local[norm], "norms and the rest")
        report = attachment.report()
        self.assertIn("7 linear layers are remote", report)
        self.assertIn("classifier.weight", report)

    def test_names_below_a_head_and_below_peft_are_found(self):
        class Adapted(nn.Module):
            def __init__(self, base_layer):
                super().__init__()
                self.base_layer = base_layer
                self.lora_A = nn.Linear(base_layer.in_features, 4, bias=False)

        bert = tiny_bert()
        attention = bert.get_submodule("encoder.layer.0.attention.self")
        attention.query = Adapted(attention.query)
        model = Tree(base_model=Tree(model=Tree(bert=bert, classifier=nn.Linear(HIDDEN, 3))))
        attachment = self.attach(model)
        whole = "base_model.model.bert."
        self.assertEqual(attachment.replaced[whole + QUERY + ".base_layer"], QUERY)
        self.assertEqual(attachment.replaced[whole + UP], UP)
        self.assertEqual(len(attachment.replaced), len(LINEARS))
        self.assertEqual(attachment.local[whole + QUERY + ".lora_A.weight"], "adapter")

    def test_a_prefix_may_be_named(self):
        self.assertEqual(
            len(self.attach(Tree(trunk=tiny_bert()), prefix="trunk.").replaced), len(LINEARS)
        )
        with self.assertRaisesRegex(ValueError, "trunk.*prefix="):
            planewise.attach(Tree(trunk=tiny_bert()), self.client, "tiny", prefix="bert.")

    def test_masters_stay_as_parameters_and_get_gradients(self):
        model = tiny_bert()
        weight = model.get_submodule(UP).weight
        attachment = self.attach(model, trainable=True)
        self.assertEqual(attachment.freed_bytes, 0)
        remote = model.get_submodule(UP)
        self.assertIs(remote.master_weight, weight)
        self.assertIn("master", attachment.local[f"{UP}.master_weight"])
        remote(torch.randn(2, HIDDEN)).sum().backward()
        self.assertEqual(weight.grad.shape, weight.shape)
        self.assertEqual(remote.master_bias.grad.shape, (LINEARS[UP][0],))

    def test_a_refusal_changes_nothing(self):
        def tie(model):
            model.add_module("head", nn.Linear(HIDDEN, HIDDEN))
            model.head.weight = model.get_submodule(QUERY).weight

        def reshape(model):
            model.pooler.dense = nn.Linear(HIDDEN, 2 * HIDDEN)

        def drop_bias(model):
            model.pooler.dense = nn.Linear(HIDDEN, HIDDEN, bias=False)

        cases = {
            "a tied weight": (tie, f"{QUERY}: its weight is tied to head"),
            "another shape": (reshape, r"pooler.dense: weight \[128, 64\] here, \[64, 64\]"),
            "no bias here": (drop_bias, "pooler.dense: no bias here, a bias in tiny"),
        }
        for name, (change, message) in cases.items():
            with self.subTest(name):
                model = tiny_bert()
                change(model)
                before = {module_name: id(m) for module_name, m in model.named_modules()}
                with self.assertRaisesRegex(ValueError, message):
                    planewise.attach(model, self.client, "tiny")
                after = {module_name: id(m) for module_name, m in model.named_modules()}
                self.assertEqual(after, before)

    def test_an_unknown_model_is_named(self):
        with self.assertRaisesRegex(planewise.errors.NotFoundError, "absent"):
            planewise.attach(tiny_bert(), self.client, "absent")

    def test_a_session_may_be_shared(self):
        with self.client.session() as session:
            first = planewise.attach(tiny_bert(), self.client, "tiny", session=session)
            second = planewise.attach(tiny_bert(), self.client, "tiny", session=session)
            self.assertIs(first.session, second.session)


if __name__ == "__main__":
    unittest.main()
