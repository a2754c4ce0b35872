#!/usr/bin/env python3
"""Exports small models of many kinds with PyTorch, to try the importer on.

  python3 graph/onnx/evaluation/export_models.py FOLDER [--seed=1] [NAME ...]

For each model of models/ it writes NAME.onnx (opset 17) and NAME.npz with the
inputs by name and PyTorch's results as out0, out1 and so on. Then

  optrail graph check FOLDER/NAME.onnx --data=FOLDER/NAME.npz

compares. It prints a line for each model: exported, or why not.
"""
import argparse
import importlib
import inspect
import os
import sys
import warnings

import numpy
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                'models'))
import language  # noqa: E402
import mixed  # noqa: E402
import tables  # noqa: E402
import vision  # noqa: E402

MODELS = {**vision.MODELS, **language.MODELS, **tables.MODELS,
          **mixed.MODELS}


def allow_missing_onnx():
    """The exporter asks for the package onnx, whose help it does not need."""
    try:
        import onnx  # noqa: F401
        return
    except ImportError:
        pass
    for place in ('torch.onnx._internal.torchscript_exporter.onnx_proto_utils',
                  'torch.onnx._internal.onnx_proto_utils'):
        try:
            utils = importlib.import_module(place)
        except ImportError:
            continue
        utils._add_onnxscript_fn = lambda model_bytes, opsets: model_bytes


def randomize(model):
    """Statistics and scales of norms that are not those of a new model."""
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
        if isinstance(module, (torch.nn.modules.batchnorm._BatchNorm,
                               torch.nn.LayerNorm, torch.nn.GroupNorm)):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias, 0, 0.2)


def export(name, folder, seed):
    torch.manual_seed(seed)
    make, inputs_of = MODELS[name]
    model, inputs = make().eval(), inputs_of()
    with torch.no_grad():
        randomize(model)
        outputs = model(*inputs.values())
    if isinstance(outputs, torch.Tensor):
        outputs = (outputs,)
    names = [f'out{i}' for i in range(len(outputs))]
    path = os.path.join(folder, name)
    more = ({'dynamo': False} if 'dynamo' in
            inspect.signature(torch.onnx.export).parameters else {})
    torch.onnx.export(model, tuple(inputs.values()), path + '.onnx',
                      opset_version=17, input_names=list(inputs),
                      output_names=names, **more)
    numpy.savez(path + '.npz',
                **{n: t.contiguous().numpy() for n, t in inputs.items()},
                **{n: t.contiguous().numpy() for n, t in zip(names, outputs)})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('folder')
    parser.add_argument('names', nargs='*')
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    warnings.filterwarnings('ignore')
    allow_missing_onnx()
    failed = 0
    for name in options.names or MODELS:
        try:
            export(name, options.folder, options.seed)
            print(f'{name}: exported', flush=True)
        except Exception as error:  # the line says why
            failed += 1
            print(f'{name}: {type(error).__name__}: {str(error)[:300]}',
                  flush=True)
    print(f'{len(options.names or MODELS) - failed} exported, '
          f'{failed} not; PyTorch {torch.__version__}')


if __name__ == '__main__':
    main()
