"""RemoteLinear against a float64 reference on the daemon's own bytes, and what it leaves behind."""

import copy
import gc
import io
import itertools
import os
import random
import unittest

import torch
from torch.utils.checkpoint import checkpoint

import planewise
from clients.python.tests.daemon_fixture import DOWN, HIDDEN, INTERMEDIATE, UP, DaemonTest
from clients.python.tests.mxfp8_reference import (
    column_quantized,
    decode_e4m3,
    product_and_bound,
    row_quantized,
)

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
OVERRIDES = ("none", "high_precision", "dequantized")


def seed_torch():
    """Prints the seed, so that PLANEWISE_SEED can replay it."""
    seed = int(os.environ.get("PLANEWISE_SEED", random.randrange(2**31)))
    print(f"PLANEWISE_SEED={seed}")
    torch.manual_seed(seed)


class RemoteLinearTest(DaemonTest):
    def setUp(self):
        seed_torch()
        # Both planes: every override can run on it.
        self.create("tiny", "mxfp8", plane_policy="both", trainable=True)
        self.session = self.client.session()
        self.addCleanup(self.session.close)

    def linear(self, layer=UP, trainable=False, **options):
        if layer == UP:
            shape = (INTERMEDIATE, HIDDEN)
        else:
            shape = (HIDDEN, INTERMEDIATE)
        if trainable:
            options["master_weight"] = torch.nn.Parameter(self.tensors[f"{layer}.weight"].clone())
            options["master_bias"] = torch.nn.Parameter(self.tensors[f"{layer}.bias"].clone())
        return planewise.RemoteLinear(
            self.session, "tiny", layer, shape[1], shape[0], **options
        )

    def stored(self, layer, plane="row"):
        """W [out, in] as a stored plane decodes, in float64."""
        name = f"{layer}.weight"
        if plane == "row":
            (part,) = self.client.read_weights(
                "tiny", [name], dequantize_to=planewise.DataType.F32
            )
            return part.to_torch().double()
        payload, scales = self.client.read_weights("tiny", [name], plane="column")
        values = decode_e4m3(payload.to_torch())
        exponents = scales.to_torch().double() - 127
        exponents = exponents.repeat_interleave(32, dim=0)[: values.shape[0], : values.shape[1]]
        return values * torch.pow(2.0, exponents)

    def assert_within(self, actual, want, what):
        exact, bound = want
        off = (actual.double().reshape(exact.shape) - exact).abs()
        worst = (off - bound).max().item()
        self.assertLessEqual(worst, 0, f"{what}: {worst} beyond the bound")

    def check_against_reference(self, layer, override, dtype, x, what):
        linear = self.linear(layer, trainable=True, backward_override=override)
        x = x.detach().requires_grad_()
        y = linear(x)
        dy = torch.randn(y.shape).to(dtype)
        y.backward(dy)
        self.assertEqual((y.dtype, x.grad.dtype), (dtype, dtype))
        self.assertEqual(linear.last_backward.backward_override, override)

        rows = x.detach().reshape(-1, x.shape[-1]).double()
        dy_rows = dy.reshape(-1, dy.shape[-1]).double()
        bias = self.tensors[f"{layer}.bias"].bfloat16().double()  # as the daemon keeps it
        weight = self.stored(layer)
        self.assert_within(
            y, product_and_bound(row_quantized(rows), weight.t(), dtype, bias), f"{what}: y"
        )
        if override == "none":
            dgrad = row_quantized(dy_rows), self.stored(layer, "column")
            wgrad = column_quantized(dy_rows).t(), column_quantized(rows)
        else:
            dgrad = dy_rows, weight
            wgrad_x = rows if override == "high_precision" else row_quantized(rows)
            wgrad = dy_rows.t(), wgrad_x
        self.assert_within(x.grad, product_and_bound(*dgrad, dtype), f"{what}: dX")
        self.assert_within(
            linear.master_weight.grad, product_and_bound(*wgrad, torch.float32), f"{what}: dW"
        )
        ones = torch.ones(1, len(dy_rows), dtype=torch.float64)
        self.assert_within(
            linear.master_bias.grad,
            product_and_bound(ones, dy_rows, torch.float32),
            f"{what}: dbias",
        )

    def test_y_and_gradients_equal_the_reference(self):
        for layer, width in ((UP, HIDDEN), (DOWN, INTERMEDIATE)):
            for override in OVERRIDES:
                for dtype in DTYPES:
                    what = f"{layer}, {override}, {dtype}"
                    with self.subTest(what):
                        x = torch.randn(37, width).to(dtype)
                        self.check_against_reference(layer, override, dtype, x, what)

    def test_any_leading_dimensions_and_strides(self):
        cases = {
            "a vector": torch.randn(HIDDEN),
            "no rows": torch.randn(0, HIDDEN),
            "one row": torch.randn(1, HIDDEN),
            "three leading dimensions": torch.randn(2, 3, 5, HIDDEN),
            "transposed": torch.randn(HIDDEN, 7).t(),
            "every other column": torch.randn(6, 2 * HIDDEN)[:, ::2],
            "every third row, from the end": torch.randn(12, HIDDEN).flip(0)[::3],
            "expanded": torch.randn(1, HIDDEN).expand(9, HIDDEN),
        }
        for name, x in cases.items():
            with self.subTest(name):
                linear = self.linear(trainable=True, backward_override="dequantized")
                given = x.detach().requires_grad_()
                y = linear(given)
                self.assertEqual(y.shape, (*x.shape[:-1], INTERMEDIATE))
                dy = torch.randn(y.shape)
                y.backward(dy)

                other = self.linear(trainable=True, backward_override="dequantized")
                rows = x.detach().clone().reshape(-1, HIDDEN).contiguous().requires_grad_()
                want = other(rows)
                want.backward(dy.reshape(want.shape))
                # The same rows of the same GEMM: the same bits.
                self.assertTrue(torch.equal(y.reshape(want.shape), want))
                self.assertTrue(torch.equal(given.grad.reshape(rows.shape), rows.grad))
                self.assertTrue(torch.equal(linear.master_weight.grad, other.master_weight.grad))
                self.assertTrue(torch.equal(linear.master_bias.grad, other.master_bias.grad))

    def test_the_upstream_gradient_may_have_any_strides(self):
        linear = self.linear(backward_override="dequantized")
        x = torch.randn(5, HIDDEN)
        dense, strided = x.clone().requires_grad_(), x.clone().requires_grad_()
        dy = torch.randn(INTERMEDIATE, 5)
        linear(dense).backward(dy.t().contiguous())
        linear(strided).backward(dy.t())
        self.assertTrue(torch.equal(dense.grad, strided.grad))
        summed = x.clone().requires_grad_()
        linear(summed).sum().backward()  # autograd hands an expanded 1
        ones = x.clone().requires_grad_()
        linear(ones).backward(torch.ones(5, INTERMEDIATE))
        self.assertTrue(torch.equal(summed.grad, ones.grad))

    def test_y_is_the_same_under_every_override(self):
        x = torch.randn(19, HIDDEN).bfloat16().requires_grad_()
        want, *others = (self.linear(backward_override=override)(x) for override in OVERRIDES)
        for y in others:
            self.assertTrue(torch.equal(y, want))

    def test_dx_is_the_same_under_both_overrides_and_not_under_none(self):
        x = torch.randn(19, HIDDEN)
        dy = torch.randn(19, INTERMEDIATE)
        gradients = {}
        for override in OVERRIDES:
            given = x.clone().requires_grad_()
            self.linear(backward_override=override)(given).backward(dy)
            gradients[override] = given.grad
        self.assertTrue(torch.equal(gradients["high_precision"], gradients["dequantized"]))
        self.assertFalse(torch.equal(gradients["none"], gradients["dequantized"]))

    def test_other_types_are_refused_by_name(self):
        with self.assertRaisesRegex(TypeError, "float64"):
            self.linear()(torch.randn(2, HIDDEN).double())

    def test_a_width_that_is_not_the_layers_is_refused(self):
        with self.assertRaisesRegex(planewise.PlanewiseError, "63"):
            self.linear()(torch.randn(2, HIDDEN - 1))

    def test_a_graph_runs_backward_once(self):
        x = torch.randn(2, HIDDEN, requires_grad=True)
        y = self.linear(backward_override="dequantized")(x)
        y.sum().backward(retain_graph=True)
        with self.assertRaises(planewise.PlanewiseError) as raised:
            y.sum().backward()
        self.assertEqual(raised.exception.reason, "OPERAND_EVICTED")

    def test_a_graph_is_not_differentiated_twice(self):
        x = torch.randn(2, HIDDEN, requires_grad=True)
        y = self.linear(backward_override="dequantized")(x).square().sum()
        (gradient,) = torch.autograd.grad(y, x, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "once_differentiable"):
            gradient.sum().backward()

    def test_whatever_needs_a_gradient_gets_it_and_nothing_else_does(self):
        names = ("x", "weight", "bias")
        gradients = {}
        inputs = torch.randn(3, HIDDEN)
        dy = torch.randn(3, INTERMEDIATE)
        for needs in itertools.product((True, False), repeat=3):
            linear = self.linear(trainable=True, backward_override="dequantized")
            tensors = (inputs.clone(), linear.master_weight, linear.master_bias)
            for tensor, need in zip(tensors, needs):
                tensor.requires_grad_(need)
            y = linear(tensors[0])
            self.assertEqual(y.requires_grad, any(needs))
            if any(needs):
                y.backward(dy)
            for name, tensor, need in zip(names, tensors, needs):
                with self.subTest(needs=needs, of=name):
                    if not need:
                        self.assertIsNone(tensor.grad)
                        continue
                    # The first case has all of them.
                    want = gradients.setdefault(name, tensor.grad)
                    self.assertTrue(torch.equal(tensor.grad, want))

    def test_gradients_of_several_backwards_add_up_once_each(self):
        linear = self.linear(trainable=True, backward_override="dequantized")
        x, dy = torch.randn(3, HIDDEN), torch.randn(3, INTERMEDIATE)
        linear(x).backward(dy)
        once = linear.master_weight.grad.clone()
        linear(x).backward(dy)
        self.assertTrue(torch.equal(linear.master_weight.grad, once + once))

    def test_autocast_decides_the_type_as_for_a_local_layer(self):
        linear = self.linear(trainable=True, backward_override="dequantized")
        local = torch.nn.Linear(HIDDEN, INTERMEDIATE)
        x = torch.randn(5, HIDDEN)
        given = x.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = linear(given)
            self.assertEqual(y.dtype, local(x).dtype)
            with torch.autocast("cpu", enabled=False):
                self.assertEqual(linear(x).dtype, torch.float32)
            with self.assertRaisesRegex(TypeError, "float64"):
                linear(x.double())
        y.float().sum().backward()
        self.assertEqual((y.dtype, given.grad.dtype), (torch.bfloat16, torch.float32))
        self.assertEqual(linear.master_weight.grad.dtype, torch.float32)
        self.assertTrue(torch.equal(y, linear(x.bfloat16())))
        self.assertEqual(linear(x).dtype, torch.float32)

    def test_values_that_are_negated_only_when_they_are_read(self):
        x = torch.view_as_complex(torch.randn(4, HIDDEN, 2)).conj().imag
        self.assertTrue(x.is_neg())
        linear = self.linear(backward_override="dequantized")
        self.assertTrue(torch.equal(linear(x), linear(x.clone().resolve_neg())))

    def test_a_copy_shares_the_hosted_weight_and_has_masters_of_its_own(self):
        linear = self.linear(trainable=True, backward_override="dequantized").eval()
        twin = copy.deepcopy(torch.nn.Sequential(linear))[0]
        x = torch.randn(2, HIDDEN)
        self.assertTrue(torch.equal(twin(x), linear(x)))
        self.assertIs(twin.session, linear.session)
        self.assertFalse(twin.training)
        twin(x).sum().backward()
        self.assertIsNone(linear.master_weight.grad)
        self.assertGreater(twin.master_weight.grad.abs().max().item(), 0)

    def test_a_state_dict_has_the_masters_and_a_pickle_is_refused(self):
        linear = self.linear(trainable=True)
        state = io.BytesIO()
        torch.save(linear.state_dict(), state)
        state.seek(0)
        other = self.linear(trainable=True)
        torch.nn.init.zeros_(other.master_weight)
        other.load_state_dict(torch.load(state))
        self.assertTrue(torch.equal(other.master_weight, linear.master_weight))
        self.assertEqual(list(self.linear().state_dict()), [])
        with self.assertRaisesRegex(TypeError, r"state_dict\(\)"):
            torch.save(linear, io.BytesIO())

    def test_an_override_that_does_not_exist_is_refused_with_those_that_do(self):
        with self.assertRaisesRegex(ValueError, "'sometimes' is not known.*'dequantized'"):
            self.linear(backward_override="sometimes")

    def test_who_asks_for_the_weight_is_told_where_it_is(self):
        linear = self.linear()
        with self.assertRaisesRegex(AttributeError, "the daemon has it"):
            linear.weight.dtype
        self.assertFalse(hasattr(linear, "bias"))
        with self.assertRaisesRegex(AttributeError, "no attribute 'wait'"):
            linear.wait

    if hasattr(torch, "compile"):  # PyTorch 2

        def test_a_compiled_model_computes_around_it(self):
            linear = self.linear(trainable=True, backward_override="dequantized")
            model = torch.nn.Sequential(torch.nn.Tanh(), linear, torch.nn.Tanh())
            x = torch.randn(3, HIDDEN)
            want = model(x)
            y = torch.compile(model, backend="eager")(x)
            y.sum().backward()
            self.assertTrue(torch.equal(y, want))
            self.assertGreater(linear.master_weight.grad.abs().max().item(), 0)

    def test_a_master_trains(self):
        linear = self.linear(trainable=True, backward_override="dequantized")
        before = linear.master_weight.detach().clone()
        optimizer = torch.optim.SGD(linear.parameters(), lr=0.5)
        linear(torch.randn(4, HIDDEN)).sum().backward()
        gradient = linear.master_weight.grad.clone()
        optimizer.step()
        self.assertGreater(gradient.abs().max().item(), 0)
        self.assertTrue(torch.equal(linear.master_weight, before - 0.5 * gradient))

    def test_a_frozen_master_gets_no_gradient_and_its_input_does(self):
        linear = self.linear(trainable=True, backward_override="dequantized")
        linear.requires_grad_(False)
        x = torch.randn(4, HIDDEN, requires_grad=True)
        linear(x).sum().backward()
        self.assertIsNone(linear.master_weight.grad)
        self.assertIsNone(linear.master_bias.grad)
        self.assertGreater(x.grad.abs().max().item(), 0)


class SavedOperandTest(DaemonTest):
    """The daemon's memory is back where it was, however a forward's graph ends."""

    def setUp(self):
        seed_torch()
        self.create("tiny", trainable=True)
        self.session = self.client.session()
        self.addCleanup(self.session.close)
        self.master = torch.nn.Parameter(self.tensors[f"{UP}.weight"].clone())
        self.linear = planewise.RemoteLinear(
            self.session, "tiny", UP, HIDDEN, INTERMEDIATE, master_weight=self.master
        )
        self.x = torch.randn(64, HIDDEN, requires_grad=True)
        self.linear(self.x.detach()[:1])
        self.baseline = self.used_bytes()

    def used_bytes(self):
        gc.collect()
        self.session.end_step()  # Executed after every release that was sent before it.
        return int(self.client.capabilities()["memory_used_bytes"])

    def assert_nothing_saved(self):
        self.assertEqual(self.used_bytes(), self.baseline)

    def test_a_graph_that_lives_is_seen(self):
        """What the other tests measure moves at all."""
        y = self.linear(self.x)
        self.assertGreater(self.linear.last_forward.saved_bytes, 0)
        self.assertGreaterEqual(
            self.used_bytes(), self.baseline + self.linear.last_forward.saved_bytes
        )
        del y
        self.assert_nothing_saved()

    def test_after_backward(self):
        self.linear(self.x).sum().backward()
        self.assert_nothing_saved()

    def test_under_no_grad(self):
        with torch.no_grad():
            y = self.linear(self.x)
        self.assertEqual(self.linear.last_forward.saved_bytes, 0)
        self.assert_nothing_saved()
        self.assertEqual(y.shape, (64, INTERMEDIATE))

    def test_in_inference_mode(self):
        with torch.inference_mode():
            y = self.linear(self.x)
        self.assert_nothing_saved()
        self.assertEqual(y.shape, (64, INTERMEDIATE))

    def test_evaluation_without_anything_that_trains(self):
        self.linear.eval().requires_grad_(False)
        y = self.linear(self.x.detach())
        self.assertEqual(self.linear.last_forward.saved_bytes, 0)
        self.assert_nothing_saved()
        self.assertFalse(y.requires_grad)

    def test_a_loss_that_is_thrown_away(self):
        for _ in range(50):
            self.linear(self.x).sum()
        self.assert_nothing_saved()

    def test_an_exception_between_forward_and_backward(self):
        def fail():
            loss = self.linear(self.x).sum()
            raise ArithmeticError(f"a loss of {loss.shape}")

        for _ in range(5):
            with self.assertRaises(ArithmeticError):
                fail()
        self.assert_nothing_saved()

    def test_gradient_checkpointing(self):
        want = self.x.detach().clone().requires_grad_()
        torch.tanh(self.linear(want)).sum().backward()
        dw, self.master.grad = self.master.grad, None
        for reentrant in (True, False):
            with self.subTest(use_reentrant=reentrant):
                x = self.x.detach().clone().requires_grad_()
                y = checkpoint(
                    lambda x: torch.tanh(self.linear(x)), x, use_reentrant=reentrant
                )
                y.sum().backward()
                self.assertTrue(torch.equal(x.grad, want.grad))
                self.assertTrue(torch.equal(self.master.grad, dw))
                self.master.grad = None
                del y
                self.assert_nothing_saved()


if __name__ == "__main__":
    unittest.main()
