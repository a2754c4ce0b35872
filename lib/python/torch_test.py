#!/usr/bin/env python3
"""optrail.torch with stand-ins for PyTorch and the library, which CI lacks: what is kept
when options change."""

import contextlib
import importlib.util
import sys
import types
import unittest


class Device:
    def __init__(self, kind, index=None):
        self.type, self.index = kind, index

    def __hash__(self):
        return hash((self.type, self.index))

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)


class Tensor:
    requires_grad = False

    def __init__(self, shape, dtype, device):
        self.shape, self.dtype, self.device = shape, dtype, device

    def is_contiguous(self):
        return True

    def is_neg(self):
        return False

    def data_ptr(self):
        return 64


class Library:
    def __init__(self, *_):
        pass

    def define(self, *_, **__):
        pass

    def impl(self, *_):
        pass


class Plan:
    """Chooses the config that its store names."""
    made = 0

    def __init__(self, op, text, *, device, store=None, **_):
        Plan.made += 1
        self.operands = [types.SimpleNamespace(role=role) for role in ("input", "output")]
        self.workspace_bytes = 0
        self.choice = types.SimpleNamespace(config=store)

    def run_at(self, addresses, stream=0, workspace=0):
        pass


def load():
    """optrail.torch, with one operator: relu."""
    torch = types.ModuleType("torch")
    types_of = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8",
                "uint8")
    for name in types_of:
        setattr(torch, name, name)
    torch.Tensor = Tensor
    torch.nn = types.SimpleNamespace(Parameter=type("Parameter", (Tensor,), {}))
    torch.Tag = types.SimpleNamespace()
    torch.empty = lambda dims, dtype, device: Tensor(dims, dtype, device)
    torch.cuda = types.SimpleNamespace(
        is_available=lambda: True, device=lambda _: contextlib.nullcontext(),
        mem_get_info=lambda _: None)
    torch.is_grad_enabled = lambda: False
    torch.compiler = types.SimpleNamespace(is_compiling=lambda: False)
    torch._C = types.SimpleNamespace(
        _cuda_getDevice=lambda: 0, _cuda_getCurrentRawStream=lambda _: 0,
        _len_torch_dispatch_stack=lambda: 0, _get_tracing_state=lambda: None,
        _are_functorch_transforms_active=lambda: False)
    torch.ops = types.SimpleNamespace(
        optrail=types.SimpleNamespace(relu=types.SimpleNamespace(default=None)))
    library = types.ModuleType("torch.library")
    library.Library, library.register_fake = Library, lambda *_, **__: None
    optrail = types.ModuleType("optrail")
    optrail.Plan, optrail.Error = Plan, RuntimeError
    optrail.operators = lambda: ["relu"]
    optrail.infer_shape = lambda op, sizes, attributes: f"n={sizes[0][0][0]}/f32"
    optrail.operands = lambda op, text: [
        types.SimpleNamespace(role="output", dims=(1,), type="f32")]
    sys.modules.update({"torch": torch, "torch.library": library, "optrail": optrail})
    spec = importlib.util.spec_from_file_location("optrail.torch", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class OptionsTest(unittest.TestCase):
    def setUp(self):
        self.module = load()
        Plan.made = 0

    def call(self, device, n=8):
        self.module.relu(Tensor((n,), "float32", device))

    def test_the_same_configs_are_kept_once(self):
        gpu = Device("cuda", 0)
        for turn in range(50):
            self.module.configure(store=("a", "b")[turn % 2])
            self.call(gpu)
            self.call(gpu)
        self.assertEqual(Plan.made, 50)  # each store is asked
        self.assertEqual(sorted(key[-1] for key in self.module._loaded), ["a", "b"])
        self.assertEqual(len(self.module._plans), 1)

    def test_a_captured_graph_keeps_its_code(self):
        gpu = Device("cuda", 0)
        self.module.configure(store="a")
        self.call(gpu)
        before = list(self.module._loaded.values())
        self.module.configure(store="b")
        self.call(gpu)
        self.assertIs(list(self.module._loaded.values())[0], before[0])

    def test_plans_on_a_cpu_go(self):
        for turn in range(5):
            self.module.configure(store=str(turn))
            self.call(Device("cpu"))
        self.assertEqual(len(self.module._plans), 1)
        self.assertEqual(self.module._loaded, {})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
