"""attach(): what becomes remote, what stays, and what is refused."""

import gc
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


class Adapted(nn.Module):
    """What PEFT puts around a linear layer, as far as names go."""

    def __init__(self, base_layer):
        super().__init__()
        self.base_layer = base_layer
        self.lora_A = nn.Linear(base_layer.in_features, 4, bias=False)


class AttachTest(DaemonTest):
    def setUp(self):
        self.create("tiny", trainable=True)

    def tiny_bert(self):
        """The model that was loaded into the daemon, as far as tiny_bert() has it."""
        model = tiny_bert()
        missing = model.load_state_dict(self.tensors, strict=False).missing_keys
        self.assertEqual(missing, [])
        return model

    def attach(self, model, **options):
        attachment = planewise.attach(model, self.client, "tiny", **options)
        self.addCleanup(attachment.close)
        return attachment

    def test_every_hosted_layer_becomes_remote_and_its_memory_is_freed(self):
        model = self.tiny_bert()
        parameters = sum(p.numel() for p in model.parameters())
        linear_bytes = 4 * sum(rows * (columns + 1) for rows, columns in LINEARS.values())
        attachment = self.attach(model)
        self.assertEqual(attachment.replaced, {name: name for name in LINEARS})
        self.assertEqual(attachment.freed_bytes, linear_bytes)
        left = sum(p.numel() for p in model.parameters())
        self.assertEqual(4 * (parameters - left), linear_bytes)
        self.assertFalse([m for m in model.modules() if isinstance(m, nn.Linear)])

    def test_a_remote_layer_computes(self):
        model = self.tiny_bert()
        self.attach(model)
        query = model.get_submodule(QUERY)
        x = torch.randn(3, HIDDEN, requires_grad=True)
        query(x).sum().backward()
        self.assertEqual(x.grad.shape, (3, HIDDEN))
        self.assertEqual((query.in_features, query.out_features), (HIDDEN, HIDDEN))

    def test_what_stays_is_stated_with_its_reason(self):
        model = Tree(bert=self.tiny_bert(), classifier=nn.Linear(HIDDEN, 3))
        attachment = self.attach(model)
        norm = "bert.encoder.layer.0.output.LayerNorm.weight"
        self.assertEqual(
            attachment.local["bert.embeddings.word_embeddings.weight"], "embedding"
        )
        self.assertEqual(attachment.local["classifier.weight"], "linear, not hosted")
        self.assertEqual(attachment.local[norm], "norm")

    def test_the_report_is_a_line_for_each_reason(self):
        bert = self.tiny_bert()
        bert.pooler.dense = Adapted(bert.pooler.dense)
        bert.embeddings.requires_grad_(False)
        bert.embeddings.tied = nn.Embedding(CONFIG["vocab_size"], HIDDEN)
        bert.embeddings.tied.weight = bert.embeddings.word_embeddings.weight
        lines = self.attach(bert).report().splitlines()
        self.assertEqual(
            [" ".join(line.split()) for line in lines],
            [
                "7 linear layers are remote, 149,504 bytes left this process",
                "stays local tensors bytes trains for example",
                "embedding 1 10,240 no embeddings.word_embeddings.weight",
                "tied weight 1 0 no embeddings.tied.weight",
                "norm 4 1,024 yes encoder.layer.0.attention.output.LayerNorm.weight",
                "adapter 1 1,024 yes pooler.dense.lora_A.weight",
            ],
        )
        self.assertLessEqual(max(map(len, lines)), 110)

    def test_names_below_a_head_and_below_peft_are_found(self):
        bert = self.tiny_bert()
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
            len(self.attach(Tree(trunk=self.tiny_bert()), prefix="trunk.").replaced), len(LINEARS)
        )
        with self.assertRaisesRegex(ValueError, "trunk.*prefix="):
            planewise.attach(Tree(trunk=self.tiny_bert()), self.client, "tiny", prefix="bert.")

    def test_masters_stay_as_parameters_and_get_gradients(self):
        model = self.tiny_bert()
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

        def tie_bias(model):
            model.decoder_bias = model.get_submodule(QUERY).bias

        def hook(model):
            model.pooler.dense.register_forward_hook(lambda module, x, y: 2 * y)

        def wrap(model):
            model.pooler.dense.forward = lambda x: 2 * x

        def train_further(model):
            for module in model.modules():
                if isinstance(module, nn.Linear):
                    module.weight.data *= 1.2

        cases = {
            "a tied weight": (tie, f"{QUERY}: its weight is tied to head.weight"),
            "a tied bias": (tie_bias, f"{QUERY}: its bias is tied to decoder_bias"),
            "a hook": (hook, "pooler.dense: has hooks"),
            "a forward of its own": (wrap, "pooler.dense: has hooks or a forward of its own"),
            "other values": (train_further, "its values are not those of tiny/"),
            "another shape": (reshape, r"pooler.dense: weight \[128, 64\] here, \[64, 64\]"),
            "no bias here": (drop_bias, "pooler.dense: no bias here, a bias in tiny"),
        }
        for name, (change, message) in cases.items():
            with self.subTest(name):
                model = self.tiny_bert()
                change(model)
                before = {module_name: id(m) for module_name, m in model.named_modules()}
                with self.assertRaisesRegex(ValueError, message):
                    planewise.attach(model, self.client, "tiny")
                after = {module_name: id(m) for module_name, m in model.named_modules()}
                self.assertEqual(after, before)

    def test_options_that_make_no_sense_change_nothing(self):
        for kind, options in (
            (TypeError, {"backwards_override": "none"}),
            (ValueError, {"backward_override": "sometimes"}),
        ):
            model = self.tiny_bert()
            with self.assertRaises(kind):
                planewise.attach(model, self.client, "tiny", **options)
            self.assertFalse([m for m in model.modules() if isinstance(m, planewise.RemoteLinear)])

    def test_values_are_compared_unless_told_otherwise_or_masters_train(self):
        fresh = tiny_bert()
        with self.assertRaisesRegex(ValueError, "check_values=False"):
            planewise.attach(fresh, self.client, "tiny")
        self.assertEqual(len(self.attach(fresh, check_values=False).replaced), len(LINEARS))
        self.assertEqual(len(self.attach(tiny_bert(), trainable=True).replaced), len(LINEARS))

    def test_values_in_high_precision_are_compared_too(self):
        self.create("plain", planewise.HighPrecision())
        with planewise.attach(self.tiny_bert(), self.client, "plain") as attachment:
            self.assertEqual(len(attachment.replaced), len(LINEARS))
        with self.assertRaisesRegex(ValueError, "its values are not those of plain/"):
            planewise.attach(tiny_bert(), self.client, "plain")

    def test_linear_layers_on_the_meta_device_need_no_memory(self):
        model = tiny_bert().to("meta")
        attachment = self.attach(model)
        self.assertEqual(attachment.freed_bytes, 0)
        y = model.get_submodule(UP)(torch.ones(2, HIDDEN))
        self.assertEqual((y.device.type, y.shape), ("cpu", (2, LINEARS[UP][0])))

    def test_a_module_that_is_there_twice_is_replaced_twice(self):
        model = self.tiny_bert()
        model.add_module("again", model.pooler)
        attachment = self.attach(model)
        self.assertIsInstance(model.again.dense, planewise.RemoteLinear)
        self.assertIs(model.again.dense, model.pooler.dense)
        self.assertEqual(attachment.replaced, {name: name for name in LINEARS})
        self.assertEqual(attachment.freed_bytes, 149_504)

    def test_lm_head_and_tied_weights_stay_and_are_stated(self):
        class CausalLm(nn.Module):
            def __init__(self, bert, tied):
                super().__init__()
                self.model = bert
                embedding = bert.embeddings.word_embeddings
                self.lm_head = nn.Linear(HIDDEN, embedding.num_embeddings, bias=False)
                if tied:
                    self.lm_head.weight = embedding.weight

            def get_output_embeddings(self):
                return self.lm_head

        for tied, why in ((False, "lm_head"), (True, "tied weight")):
            with self.subTest(tied=tied):
                attachment = self.attach(CausalLm(self.tiny_bert(), tied))
                self.assertEqual(attachment.local["lm_head.weight"], why)
                (row,) = (line for line in attachment.report().splitlines() if why in line)
                stated_bytes = int(row[len(why) :].split()[1].replace(",", ""))
                self.assertEqual(stated_bytes == 0, tied)
                attachment.close()

    def test_weights_that_are_tied_and_leave_together_are_counted_once(self):
        model = self.tiny_bert()
        attention = model.get_submodule("encoder.layer.0.attention.self")
        attention.key.weight = attention.query.weight
        attachment = self.attach(model)
        self.assertEqual(attachment.freed_bytes, 149_504 - 4 * HIDDEN * HIDDEN)

    def test_what_only_looks_like_a_linear_layer_stays(self):
        class Scaled(nn.Linear):
            def forward(self, x):
                return 2 * super().forward(x)

        model = self.tiny_bert()
        model.pooler.dense = Scaled(HIDDEN, HIDDEN)
        attachment = self.attach(model)
        self.assertIsInstance(model.pooler.dense, Scaled)
        self.assertEqual(len(attachment.replaced), len(LINEARS) - 1)
        self.assertEqual(attachment.local["pooler.dense.weight"], "linear, not hosted")

    def test_attached_again_a_model_goes_on_with_the_new_session(self):
        model = self.tiny_bert()
        x = torch.ones(2, HIDDEN)
        first = self.attach(model, backward_override="dequantized")
        want = model.pooler.dense(x)
        first.close()
        with self.assertRaisesRegex(ValueError, r"session is closed.*attach\(\)"):
            model.pooler.dense(x)
        second = self.attach(model)
        self.assertEqual(second.replaced, first.replaced)
        self.assertTrue(torch.equal(model.pooler.dense(x), want))
        with self.assertRaisesRegex(ValueError, "attached frozen before"):
            planewise.attach(model, self.client, "tiny", trainable=True)

    def test_attached_again_masters_stay(self):
        model = self.tiny_bert()
        self.attach(model, trainable=True).close()
        master = model.pooler.dense.master_weight
        self.attach(model, trainable=True)
        self.assertIs(model.pooler.dense.master_weight, master)

    def test_the_client_need_not_be_kept(self):
        model = self.tiny_bert()
        attachment = planewise.attach(model, planewise.Client(self.target), "tiny")
        gc.collect()
        self.assertEqual(model.pooler.dense(torch.ones(2, HIDDEN)).shape, (2, HIDDEN))
        attachment.close()

    def test_masters_need_a_model_that_was_created_trainable(self):
        self.create("frozen")
        model = self.tiny_bert()
        with self.assertRaisesRegex(ValueError, "create it with trainable=True"):
            planewise.attach(model, self.client, "frozen", trainable=True)
        self.assertIsInstance(model.pooler.dense, nn.Linear)

    def test_an_unknown_model_is_named(self):
        with self.assertRaisesRegex(planewise.errors.NotFoundError, "absent"):
            planewise.attach(self.tiny_bert(), self.client, "absent")

    def test_a_session_may_be_shared(self):
        with self.client.session() as session:
            first = planewise.attach(self.tiny_bert(), self.client, "tiny", session=session)
            second = planewise.attach(self.tiny_bert(), self.client, "tiny", session=session)
            self.assertIs(first.session, second.session)


if __name__ == "__main__":
    unittest.main()
