#!/usr/bin/env python3
"""PyTorch as a peer of `optrail graph run` (suites/graph/peer.h has the messages).

FOLDER is what `optrail graph export` wrote:

  optrail graph export model.onnx --out=/tmp/model
  optrail graph run model.onnx --device=cuda --type=bf16
      --against="python3 suites/graph/torch_peer.py /tmp/model --type=bf16"

The ONNX file is read here, without the package onnx, and becomes a module whose
shapes are static. What depends on constants alone is computed once, and
attention is PyTorch's own (scaled_dot_product_attention): the model as somebody
who knows PyTorch would write it down. --mode=eager runs it inside of a captured
CUDA graph; any other mode is one of torch.compile's, with weights frozen. A mode
without graphs of its own (default, max-autotune-no-cudagraphs) is captured as
well, which leaves out the time that Python takes for a call.
"""
import argparse
import ctypes
import json
import os
import struct
import sys
import time

import torch
import torch.nn.functional as F

# ----------------------------------------------------------------- the format


def varint(b, i):
    value = shift = 0
    while True:
        c = b[i]
        i += 1
        value |= (c & 127) << shift
        shift += 7
        if c < 128:
            return value, i


def fields(b):
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        wire = key & 7
        if wire == 0:
            value, i = varint(b, i)
        elif wire == 2:
            size, i = varint(b, i)
            value, i = b[i:i + size], i + size
        elif wire == 5:
            value, i = b[i:i + 4], i + 4
        else:
            value, i = b[i:i + 8], i + 8
        yield key >> 3, value


def text(b):
    return bytes(b).decode()


def signed(v):
    return v - (1 << 64) if v >= 1 << 63 else v


def ints_of(v):
    if isinstance(v, int):
        return [signed(v)]
    values, i = [], 0
    while i < len(v):
        value, i = varint(v, i)
        values.append(signed(value))
    return values


TYPES = {1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16,
         6: torch.int32, 7: torch.int64, 9: torch.bool, 10: torch.float16,
         11: torch.float64, 16: torch.bfloat16}


def tensor_of(b, folder):
    dims, name, raw, kind, place = [], '', None, 1, {}
    numbers = []
    for f, v in fields(b):
        if f == 1:
            dims += ints_of(v)
        elif f == 2:
            kind = v
        elif f == 4:
            numbers += ([struct.unpack('<f', v)[0]] if len(v) == 4 else
                        list(struct.unpack(f'<{len(v) // 4}f', v)))
        elif f in (5, 7):
            numbers += ints_of(v)
        elif f == 8:
            name = text(v)
        elif f == 9:
            raw = v
        elif f == 13:
            pair = {k: text(x) for k, x in fields(v)}
            place[pair[1]] = pair.get(2, '')
    dtype = TYPES[kind]
    if place:
        with open(os.path.join(folder, place['location']), 'rb') as file:
            file.seek(int(place.get('offset', 0)))
            raw = file.read(int(place['length']))
    if raw is not None and len(raw) > 0:
        return name, torch.frombuffer(bytearray(raw), dtype=dtype).reshape(dims)
    return name, torch.tensor(numbers, dtype=dtype).reshape(dims)


class Node:
    def __init__(self, b, folder):
        self.inputs, self.outputs, self.op, self.at = [], [], '', {}
        for f, v in fields(b):
            if f == 1:
                self.inputs.append(text(v))
            elif f == 2:
                self.outputs.append(text(v))
            elif f == 4:
                self.op = text(v)
            elif f == 5:
                name, value, ints = '', None, []
                for k, x in fields(v):
                    if k == 1:
                        name = text(x)
                    elif k == 2:
                        value = struct.unpack('<f', x)[0]
                    elif k == 3:
                        value = signed(x)
                    elif k == 4:
                        value = text(x)
                    elif k == 5:
                        value = tensor_of(x, folder)[1]
                    elif k == 8:
                        ints += ints_of(x)
                self.at[name] = ints if value is None else value


def read_model(folder, file):
    with open(os.path.join(folder, file), 'rb') as f:
        model = memoryview(f.read())
    graph = [v for f, v in fields(model) if f == 7][0]
    nodes, constants = [], {}
    for f, v in fields(graph):
        if f == 1:
            nodes.append(Node(v, folder))
        elif f == 5:
            name, value = tensor_of(v, folder)
            constants[name] = value
    return nodes, constants


# -------------------------------------------------------------- the operators


def spatial(at, kernel, key, default):
    count = 2 * len(kernel) if key == 'pads' else len(kernel)
    return at.get(key, [default] * count)


def ints(value):
    """Sizes and axes, which torch.compile wants as numbers."""
    return value if isinstance(value, list) else value.tolist()


def evaluate(node, x):
    """The node's one result; x are tensors, lists of sizes, or None."""
    op, at = node.op, node.at
    if op == 'Identity':
        return x[0]
    if op == 'Constant':
        return at['value'] if 'value' in at else torch.tensor(
            next(iter(at.values())))
    if op == 'ConstantOfShape':
        value = at.get('value', torch.zeros(1))
        return value.reshape(()).expand(ints(x[0])).contiguous()
    if op == 'Shape':
        return torch.tensor(x[0].shape, dtype=torch.int64)
    if op == 'Div' and not x[0].is_floating_point():
        return torch.div(x[0], x[1], rounding_mode='trunc')
    if op in ('Add', 'Sub', 'Mul', 'Div', 'Pow', 'Equal', 'GreaterOrEqual'):
        names = {'Equal': 'eq', 'GreaterOrEqual': 'ge'}
        return getattr(torch, names.get(op, op.lower()))(x[0], x[1])
    if op in ('Sqrt', 'Erf', 'Tanh', 'Sigmoid', 'Relu', 'Neg'):
        return getattr(torch, op.lower())(x[0])
    if op == 'HardSwish':
        return F.hardswish(x[0])
    if op == 'HardSigmoid':
        return F.hardsigmoid(x[0])
    if op == 'Where':
        return torch.where(x[0], x[1], x[2])
    if op == 'Expand':
        return x[0].expand(torch.broadcast_shapes(x[0].shape, ints(x[1])))
    if op == 'Gather':
        axis = at.get('axis', 0)
        if axis == 0 and x[0].is_floating_point() and x[0].dim() == 2:
            return F.embedding(x[1], x[0])
        index = x[1].reshape(-1)
        if not index.is_cuda:  # of a shape: -1 is its last size
            index = index % x[0].shape[axis]
        flat = x[0].index_select(axis, index)
        shape = x[0].shape
        return flat.reshape(shape[:axis] + x[1].shape + shape[axis + 1:])
    if op == 'GatherElements':
        return torch.gather(x[0], at.get('axis', 0), x[1])
    if op == 'Unsqueeze':
        y = x[0]
        axes = ints(x[1])
        for axis in sorted(a % (y.dim() + len(axes)) for a in axes):
            y = y.unsqueeze(axis)
        return y
    if op == 'Concat':
        return torch.cat(x, at['axis'])
    if op == 'Transpose':
        return x[0].permute(at['perm'])
    if op == 'Flatten':
        return x[0].flatten(at.get('axis', 1))
    if op == 'Reshape':
        dims = ints(x[1])
        return x[0].reshape([x[0].shape[i] if d == 0 else d
                             for i, d in enumerate(dims)])
    if op == 'Slice':
        y = x[0]
        starts, ends = ints(x[1]), ints(x[2])
        axes = ints(x[3]) if len(x) > 3 else range(len(starts))
        steps = ints(x[4]) if len(x) > 4 else [1] * len(starts)
        for start, end, axis, step in zip(starts, ends, axes, steps):
            index = [slice(None)] * y.dim()
            index[axis] = slice(start, end if abs(end) < 1 << 40 else None, step)
            y = y[tuple(index)]
        return y
    if op in ('ReduceSum', 'ReduceMean'):
        axes = ints(x[1]) if len(x) > 1 else at['axes']
        f = torch.sum if op == 'ReduceSum' else torch.mean
        return f(x[0], axes, keepdim=bool(at.get('keepdims', 1)))
    if op == 'Softmax':
        return torch.softmax(x[0], at.get('axis', -1))
    if op == 'LayerNormalization':
        return F.layer_norm(x[0], x[1].shape, x[1],
                            x[2] if len(x) > 2 else None,
                            at.get('epsilon', 1e-5))
    if op == 'MatMul':
        return torch.matmul(x[0], x[1])
    if op == 'Gemm':
        a = x[0].t() if at.get('transA', 0) else x[0]
        b = x[1] if at.get('transB', 0) else x[1].t()
        return F.linear(a, b, x[2] if len(x) > 2 else None)
    if op == 'Conv':
        kernel = x[1].shape[2:]
        pads = spatial(at, kernel, 'pads', 0)
        half = len(kernel)
        y = x[0]
        padding = pads[:half]
        if pads[:half] != pads[half:]:
            y = F.pad(y, [p for d in reversed(range(half))
                          for p in (pads[d], pads[half + d])])
            padding = [0] * half
        return F.conv2d(y, x[1], x[2] if len(x) > 2 else None,
                        spatial(at, kernel, 'strides', 1), padding,
                        spatial(at, kernel, 'dilations', 1),
                        at.get('group', 1))
    if op == 'BatchNormalization':
        return F.batch_norm(x[0], x[3], x[4], x[1], x[2], False, 0.0,
                            at.get('epsilon', 1e-5))
    if op == 'MaxPool':
        kernel = at['kernel_shape']
        return F.max_pool2d(x[0], kernel, spatial(at, kernel, 'strides', 1),
                            spatial(at, kernel, 'pads', 0)[:2])
    if op == 'GlobalAveragePool':
        return x[0].mean((2, 3), keepdim=True)
    raise ValueError(f'{op} is not covered')


class Attention:
    """softmax(q k * scale + mask) v in place of its parts."""

    def __init__(self, inputs, outputs, scale, mask, causal):
        self.op, self.inputs, self.outputs = 'attention', inputs, outputs
        self.scale, self.mask, self.causal = scale, mask, causal


class Model(torch.nn.Module):
    def __init__(self, nodes, constants, model, feeds, dtype):
        super().__init__()
        known, values = dict(constants), dict(feeds)
        rest = []
        with torch.no_grad():
            for node in nodes:
                x = [known.get(i, values.get(i)) if i else None
                     for i in node.inputs]
                result = evaluate(node, x)
                folds = node.op == 'Shape' or all(
                    not i or i in known for i in node.inputs)
                (known if folds else values)[node.outputs[0]] = result
                if not folds:
                    rest.append(node)
        self.nodes = self.with_attention(rest, known)
        self.numbers = {}  # what shapes are made of stays on the host
        self.names = {}
        used = {i for node in self.nodes for i in node.inputs if i in known}
        for number, name in enumerate(sorted(used)):
            value = known[name]
            if any(name in node.inputs[1:] and node.op in (
                    'Reshape', 'Expand', 'Slice', 'Unsqueeze', 'ReduceSum',
                    'ReduceMean') for node in self.nodes):
                self.numbers[name] = value.tolist()
                continue
            if value.is_floating_point():
                value = value.to(dtype)
            if value.dim() == 0 and value.is_floating_point():
                self.numbers[name] = known[name].item()
                continue
            value = value.cuda()
            if value.dim() == 4 and any(
                    node.op == 'Conv' and node.inputs[1] == name
                    for node in self.nodes):
                value = value.contiguous(memory_format=torch.channels_last)
            self.names[name] = f'c{number}'
            self.register_buffer(f'c{number}', value)
        for node in self.nodes:
            if node.op == 'attention' and node.mask is not None:
                node.mask = node.mask.to(dtype).cuda()
        self.inputs = [i['name'] for i in model['inputs']]
        self.outputs = [o['name'] for o in model['outputs']]
        self.dtype = dtype

    @staticmethod
    def with_attention(nodes, known):
        by = {o: n for n in nodes for o in n.outputs}
        readers = {}
        for n in nodes:
            for i in n.inputs:
                readers.setdefault(i, []).append(n)
        gone, made = set(), {}
        for s in nodes:
            if s.op != 'Softmax' or len(readers[s.outputs[0]]) != 1:
                continue
            product = readers[s.outputs[0]][0]
            if product.op != 'MatMul' or product.inputs[0] != s.outputs[0]:
                continue
            chain, scale, mask, at = [s], 1.0, None, s.inputs[0]
            while at in by and by[at].op in ('Add', 'Mul', 'Div'):
                n = by[at]
                constant = [i for i in n.inputs if i in known]
                if len(constant) != 1:
                    break
                value = known[constant[0]]
                if n.op == 'Add':
                    if scale != 1.0 or mask is not None:
                        break
                    mask = value
                elif value.numel() == 1:
                    scale *= value.item() if n.op == 'Mul' else 1 / value.item()
                else:
                    break
                chain.append(n)
                at = [i for i in n.inputs if i not in known][0]
            if at not in by or by[at].op != 'MatMul' or any(
                    len(readers[n.outputs[0]]) != 1 for n in chain + [by[at]]):
                continue
            q, k = by[at].inputs
            causal = False
            if mask is not None:
                hidden = (mask < -1e4).reshape(mask.shape[-2:]) if (
                    mask.numel() == mask.shape[-1] * mask.shape[-2]) else None
                if (mask == 0).all():
                    mask = None
                elif hidden is not None and torch.equal(
                        hidden, torch.ones_like(hidden).triu(1)):
                    mask, causal = None, True
            gone.update(id(n) for n in chain + [by[at]])
            made[id(product)] = Attention([q, k, product.inputs[1]],
                                          product.outputs, scale, mask, causal)
        return [made.get(id(n), n) for n in nodes if id(n) not in gone]

    def forward(self, *inputs):
        values = dict(self.numbers)
        for name, buffer in self.names.items():
            values[name] = getattr(self, buffer)
        for name, value in zip(self.inputs, inputs):
            values[name] = (value.to(self.dtype)
                            if value.is_floating_point() else value)
        for node in self.nodes:
            x = [values[i] if i else None for i in node.inputs]
            if node.op == 'attention':
                y = F.scaled_dot_product_attention(
                    x[0], x[1].transpose(-2, -1), x[2], node.mask,
                    is_causal=node.causal, scale=node.scale)
            elif node.op in ('Add', 'Mul', 'Div', 'Pow') and not isinstance(
                    x[0], torch.Tensor):
                # A number on the left.
                y = {'Add': lambda a, b: b + a, 'Mul': lambda a, b: b * a,
                     'Div': lambda a, b: a / b,
                     'Pow': lambda a, b: torch.pow(a, b)}[node.op](x[0], x[1])
            else:
                y = evaluate(node, x)
            values[node.outputs[0]] = y
        return [values[o] for o in self.outputs]


# ------------------------------------------------------------------- the peer


def say(payload):
    body = payload if isinstance(payload, bytes) else payload.encode()
    OUT.write(struct.pack('<I', len(body)) + body)
    OUT.flush()


def read(size):
    data = sys.stdin.buffer.read(size)
    if len(data) < size:
        sys.exit(0)
    return data


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('folder')
    parser.add_argument('--type', default='f32', choices=['f32', 'bf16'])
    parser.add_argument('--mode', default='max-autotune')
    options = parser.parse_args()
    with open(os.path.join(options.folder, 'model.json')) as file:
        model = json.load(file)
    nodes, constants = read_model(options.folder, model['model'])
    types = {'f32': torch.float32, 'i64': torch.int64, 'i32': torch.int32,
             'bool': torch.bool}
    feeds = {}
    for i in model['inputs']:
        with open(os.path.join(options.folder, i['file']), 'rb') as file:
            feeds[i['name']] = torch.frombuffer(
                bytearray(file.read()), dtype=types[i['type']]).reshape(i['dims'])
    dtype = torch.bfloat16 if options.type == 'bf16' else torch.float32
    module = Model(nodes, constants, model, feeds, dtype).eval()
    inputs = [feeds[i['name']].cuda() for i in model['inputs']]
    inputs = [i.contiguous(memory_format=torch.channels_last)
              if i.dim() == 4 else i for i in inputs]
    graph = None
    with torch.no_grad():
        call = module
        if options.mode != 'eager':
            import torch._inductor.config as inductor
            inductor.freezing = True
            call = torch.compile(module, mode=options.mode, fullgraph=True,
                                 dynamic=False)
        for _ in range(4):
            results = call(*inputs)
        torch.cuda.synchronize()
        if (options.mode in ('eager', 'default') or
                options.mode.endswith('no-cudagraphs')):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                results = call(*inputs)
        say(f'ready PyTorch {torch.__version__} ({options.mode}, '
            f'{options.type})')
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        while True:
            what, number = read(
                struct.unpack('<I', read(4))[0]).decode().split()
            if what == 'run':
                worked = time.process_time_ns()
                torch.cuda.synchronize()
                begin.record()
                for _ in range(int(number)):
                    if graph is not None:
                        graph.replay()
                    else:
                        results = call(*inputs)
                end.record()
                torch.cuda.synchronize()
                wall = int(begin.elapsed_time(end) * 1e6)
                say(f'{wall} {time.process_time_ns() - worked}')
            else:
                result = results[int(number)].float().contiguous().cpu()
                say(ctypes.string_at(result.data_ptr(),
                                     result.numel() * result.element_size()))


# What prints, prints for people.
OUT = os.fdopen(os.dup(1), 'wb')
os.dup2(2, 1)
try:
    main()
except Exception as error:  # the message says why
    import traceback
    traceback.print_exc()
    say(f'error {type(error).__name__}: {error}'[:500])
    sys.exit(1)
