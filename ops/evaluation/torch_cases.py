"""PyTorch's way to compute the operators that have kernels of ours, on any shape:
case("softmax", "rows=7,cols=50257/bf16") is (function, operands, type).

An operand is a size, of normal numbers of that type, or a function that makes
it. cases() are the shapes of docs/lab/gpus.md.
"""
import functools

import torch
import torch.nn.functional as F
from torch.nn.attention.bias import causal_lower_right

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


@functools.lru_cache
def device():
    """Not before it is needed: a process that has opened a GPU cannot fork."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def parse(shape):
    """Dimensions and attributes by name, and the type."""
    first, *attributes, dtype = shape.split("/")
    pairs = [pair.split("=") for text in [first, *attributes]
             for pair in text.split(",")]
    return ({name: int(value) if value.isdigit() else value
             for name, value in pairs}, TYPES[dtype])


def elementwise(function, operands=1):
    return lambda p, dtype: (function(p), [(p["n"],)] * operands)


def gelu(p):
    tanh = p.get("approximation", "none")
    return lambda x: F.gelu(x, approximate=tanh)


def softmax(p, dtype):
    return lambda x: torch.softmax(x, -1), [(p["rows"], p["cols"])]


def sums(p, dtype):
    axis = p.get("axis", "cols")
    function = {"cols": lambda x: x.sum(-1), "rows": lambda x: x.sum(0),
                "all": lambda x: x.sum()}[axis]
    return function, [(p["rows"], p["cols"])]


def transpose(p, dtype):
    """contiguous() would copy nothing of a single row or column."""
    return (lambda x: x.t().clone(memory_format=torch.contiguous_format),
            [(p["rows"], p["cols"])])


def layer_norm(p, dtype):
    sizes = [(p["rows"], p["cols"]), (p["cols"],), (p["cols"],)]
    if p.get("statistics") == "written":
        return lambda x, g, b: torch.ops.aten.native_layer_norm(
            x, [x.shape[1]], g, b, 1e-5), sizes
    return lambda x, g, b: F.layer_norm(x, (x.shape[1],), g, b), sizes


def rms_norm(p, dtype):
    sizes = [(p["rows"], p["cols"]), (p["cols"],)]
    if p.get("statistics") == "written":
        return lambda x, g: torch.ops.aten._fused_rms_norm(
            x, [x.shape[1]], g, 1e-5), sizes
    return lambda x, g: F.rms_norm(x, (x.shape[1],), g, 1e-5), sizes


def backward_operands(p, dtype):
    ones = torch.ones(p["cols"], device=device(), dtype=dtype)
    return (ones, torch.zeros(p["rows"], 1, device=device()),
            torch.ones(p["rows"], 1, device=device()))


def layer_norm_backward(p, dtype):
    ones, mean, rstd = backward_operands(p, dtype)
    return lambda dy, x: torch.ops.aten.native_layer_norm_backward(
        dy, x, [x.shape[1]], mean, rstd, ones, ones,
        [True, True, True]), [(p["rows"], p["cols"])] * 2


def rms_norm_backward(p, dtype):
    ones, _, rstd = backward_operands(p, dtype)
    return lambda dy, x: torch.ops.aten._fused_rms_norm_backward(
        dy, x, [x.shape[1]], rstd, ones,
        [True, True]), [(p["rows"], p["cols"])] * 2


def embedding_bag(p, dtype):
    power = 8 if p.get("indices") == "skewed" else 1

    def indices():
        u = torch.rand(p["bags"], p["lookups"], device=device(),
                       dtype=torch.float64)
        return (p["rows"] * u**power).to(torch.int32)

    return (lambda table, at: F.embedding_bag(at, table, mode="sum"),
            [(p["rows"], p["cols"]), indices])


def matmul(p, dtype):
    return torch.matmul, [(p["m"], p["k"]), (p["k"], p["n"])]


def linear(p, dtype):
    f = {"gelu": F.gelu, "relu": F.relu,
         "none": lambda x: x}[p.get("activation", "none")]
    return (lambda x, w, b: f(torch.addmm(b, x, w)),
            [(p["m"], p["k"]), (p["k"], p["n"]), (p["n"],)])


def batched_matmul(p, dtype):
    """A batch of one is a plain product, which may take other kernels."""
    batch, m, n, k = p["batch"], p["m"], p["n"], p["k"]
    transposed = p.get("transposed", "none")
    a = (batch, k, m) if transposed == "a" else (batch, m, k)
    b = (batch, n, k) if transposed == "b" else (batch, k, n)
    if batch == 1:
        a, b = a[1:], b[1:]
    product = torch.mm if batch == 1 else torch.bmm
    return (lambda a, b: product(a.mT if transposed == "a" else a,
                                 b.mT if transposed == "b" else b), [a, b])


def convolution(p, dtype, fused=False, groups=1):
    """Channels last, as cuDNN wants filters: [k, r, s, c]. Alone, and with what
    follows it in a network."""
    stride, padding = p.get("stride", 1), p.get("padding", 0)
    k = p.get("k", p["c"])

    def convolve(x, weights):
        return F.conv2d(x.permute(0, 3, 1, 2), weights.permute(0, 3, 1, 2),
                        stride=stride, padding=padding, groups=groups)

    def with_rest(x, weights, scale, shift):
        y = convolve(x, weights) * scale[:, None, None]
        return F.relu(y + shift[:, None, None])

    sizes = [(p["n"], p["h"], p["w"], p["c"]),
             (k, p["r"], p["s"], p["c"] // groups)]
    return (with_rest, sizes + [(k,), (k,)]) if fused else (convolve, sizes)


def attention(p, dtype):
    """The last query sees all keys. PyTorch's is_causal lets the first query
    see the first key alone, which is the same where there are as many."""
    group = p.get("group", 1)
    hidden = {}
    if p.get("causal") == "yes" and p["queries"] > 1:
        hidden = ({"is_causal": True} if p["queries"] == p["keys"] else
                  {"attn_mask": causal_lower_right(p["queries"], p["keys"])})
    keys = (p["batch"], p["heads"] // group, p["keys"], p["d"])
    return (lambda q, k, v: F.scaled_dot_product_attention(
        q, k, v, enable_gqa=group > 1, **hidden),
            [(p["batch"], p["heads"], p["queries"], p["d"]), keys, keys])


OPERATORS = {
    "add": elementwise(lambda p: torch.add, 2),
    "attention": attention,
    "batched_matmul": batched_matmul,
    "conv2d": convolution,
    "conv_bn_relu": lambda p, dtype: convolution(p, dtype, fused=True),
    "copy": elementwise(lambda p: lambda x: x.clone()),
    "depthwise_conv2d": lambda p, dtype: convolution(p, dtype, groups=p["c"]),
    "embedding_bag": embedding_bag,
    "gelu": elementwise(gelu),
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
    "linear": linear,
    "matmul": matmul,
    "relu": elementwise(lambda p: F.relu),
    "rms_norm": rms_norm,
    "rms_norm_backward": rms_norm_backward,
    "softmax": softmax,
    "sum": sums,
    "transpose": transpose,
}


def case(op, shape):
    """(function, operands, type); KeyError for an operator that is not here."""
    parameters, dtype = parse(shape)
    function, sizes = OPERATORS[op](parameters, dtype)
    return function, sizes, dtype


MATRICES = ["rows=4096,cols=1024", "rows=8192,cols=8192",
            "rows=128,cols=32000", "rows=65536,cols=512",
            "rows=16,cols=131072"]


def rows_cases():
    for matrix in MATRICES:
        p, _ = parse(matrix + "/bf16")
        yield "gelu", f"n={p['rows'] * p['cols']}/bf16"
        for op in ["sum", "transpose", "layer_norm", "rms_norm",
                   "layer_norm_backward", "rms_norm_backward"]:
            yield op, matrix + "/bf16"
        yield "sum", matrix + "/axis=rows/bf16"


def bag_cases():
    for shape in ["rows=1000000,cols=64,bags=4096,lookups=32/f32",
                  "rows=1000000,cols=128,bags=8192,lookups=20/f16",
                  "rows=1000000,cols=128,bags=8192,lookups=20/indices=skewed/f16"]:
        yield "embedding_bag", shape


def linear_cases():
    for shape in ["m=4096,n=1024,k=1024/bf16",
                  "m=4096,n=4096,k=1024/activation=gelu/bf16",
                  "m=4096,n=1024,k=4096/bf16",
                  "m=4096,n=4096,k=1024/activation=relu/bf16",
                  "m=384,n=4096,k=1024/activation=gelu/bf16",
                  "m=384,n=1024,k=4096/bf16"]:
        yield "linear", shape


def batched_cases():
    """Scores and context of attention (BERT-large), backward products."""
    for shape in ["batch=16,m=384,n=384,k=64/transposed=b/bf16",
                  "batch=16,m=384,n=64,k=384/bf16",
                  "batch=128,m=512,n=512,k=64/transposed=b/bf16",
                  "batch=128,m=512,n=64,k=512/bf16",
                  "batch=128,m=512,n=64,k=512/transposed=a/bf16",
                  "batch=512,m=27,n=27,k=128/transposed=b/bf16"]:
        yield "batched_matmul", shape


def training_cases():
    """What a training step of BERT-large has beside (bert_large_half)."""
    for shape in ["m=4096,n=1024,k=1024/transposed=b",
                  "m=1024,n=1024,k=4096/transposed=a",
                  "m=4096,n=1024,k=4096/transposed=b",
                  "m=1024,n=4096,k=4096/transposed=a",
                  "m=4096,n=4096,k=1024/transposed=b",
                  "m=4096,n=1024,k=4096/transposed=a"]:
        yield "batched_matmul", f"batch=1,{shape}/bf16"
    yield "layer_norm", "rows=4096,cols=1024/statistics=written/bf16"
    yield "sum", "rows=4096,cols=4096/axis=rows/bf16"
    yield "gelu", "n=16777216/bf16"
    yield "add", "n=4194304/bf16"


def both_convolutions(h, c, k, r, padding, stride, dtype):
    attributes = ([f"padding={padding}"] if padding else []) + (
        [f"stride={stride}"] if stride > 1 else [])
    shape = (f"n=32,h={h},w={h},c={c},k={k},r={r},s={r}" +
             "".join(["/" + ",".join(attributes)] if attributes else []) +
             "/" + dtype)
    yield "conv2d", shape
    yield "conv_bn_relu", shape


def convolution_cases():
    for layer in [(56, 64, 64, 3, 1, 1), (28, 128, 128, 3, 1, 1),
                  (14, 256, 256, 3, 1, 1), (7, 512, 512, 3, 1, 1),
                  (56, 64, 256, 1, 0, 1), (56, 256, 64, 1, 0, 1),
                  (56, 128, 128, 3, 1, 2), (224, 3, 64, 7, 3, 2)]:
        yield from both_convolutions(*layer, "f16")


def resnet_cases():
    """What resnet50_32_half has."""
    yield from both_convolutions(224, 3, 64, 7, 3, 2, "bf16")
    for h, narrow, wide, before in [(56, 64, 256, 64), (28, 128, 512, 256),
                                    (14, 256, 1024, 512), (7, 512, 2048, 1024)]:
        first = h == 56
        layers = [(h if first else 2 * h, before, narrow, 1, 0, 1),
                  (h, narrow, narrow, 3, 1, 1), (h, narrow, wide, 1, 0, 1),
                  (h, wide, narrow, 1, 0, 1)]
        if not first:
            layers += [(2 * h, narrow, narrow, 3, 1, 2),
                       (2 * h, before, wide, 1, 0, 2)]
        for layer in layers:
            yield from both_convolutions(*layer, "bf16")
        yield "add", f"n={32 * h * h * wide}/bf16"
    yield "relu", "n=6422528/bf16"
    yield "linear", "m=32,n=1000,k=2048/bf16"


def llama_cases():
    """What llama3_8b_{prefill,decode}_half have beside attention_cases."""
    sizes = [(4096, 4096), (1024, 4096), (14336, 4096), (4096, 14336)]
    for m, n, k in [(m, n, k) for m in (1, 512) for n, k in sizes] + [
            (1, 128256, 4096)] + [(m, n, k) for m in (1, 16)
                                  for n in (1024, 2048, 3072)
                                  for k in (2048, 4096)]:
        yield "matmul", f"m={m},n={n},k={k}/bf16"
    yield "rms_norm", "rows=512,cols=4096/bf16"
    yield "add", "n=2097152/bf16"


def attention_cases():
    for batch, heads, queries, keys, d, attributes in [
            (8, 16, 512, 512, 64, ""), (4, 16, 4096, 4096, 64, ""),
            (4, 16, 4096, 4096, 128, "/causal=yes"),
            (1, 32, 8192, 8192, 128, "/causal=yes"),
            (1, 16, 16384, 16384, 128, ""),
            (1, 32, 512, 512, 128, "/causal=yes,group=4"),
            (1, 32, 1, 2048, 128, "/group=4"),
            (8, 32, 1, 8192, 128, "/group=4")]:
        yield ("attention",
               f"batch={batch},heads={heads},queries={queries},keys={keys},"
               f"d={d}{attributes}/bf16")


def cases():
    """(op, shape)"""
    yield from rows_cases()
    yield from bag_cases()
    yield from linear_cases()
    yield from batched_cases()
    yield from training_cases()
    yield from convolution_cases()
    yield from resnet_cases()
    yield from llama_cases()
    yield from attention_cases()


def operands(sizes, dtype):
    return [size() if callable(size) else
            torch.randn(size, device=device(), dtype=dtype) for size in sizes]


def bytes_of(result):
    results = result if isinstance(result, (tuple, list)) else [result]
    return sum(t.nbytes for t in results)
