"""PyTorch's way to compute the operators that have CUDA kernels, beside those of
torch_peers.py: cases of (op, shape, function, operands, type).

An operand is a size, of normal numbers of that type, or a function that makes
it.
"""
import torch
import torch.nn.functional as F

MATRICES = [(4096, 1024), (8192, 8192), (128, 32000), (65536, 512),
            (16, 131072)]


def matrix_cases():
    bf16 = torch.bfloat16
    for rows, cols in MATRICES:
        n, shape = f"n={rows * cols}/bf16", f"rows={rows},cols={cols}"
        size = (rows, cols)
        ones = torch.ones(cols, device="cuda", dtype=bf16)
        mean = torch.zeros(rows, 1, device="cuda")
        rstd = torch.ones(rows, 1, device="cuda")

        def layer_norm_backward(dy, x, ones=ones, mean=mean, rstd=rstd):
            return torch.ops.aten.native_layer_norm_backward(
                dy, x, [x.shape[1]], mean, rstd, ones, ones,
                [True, True, True])

        def rms_norm_backward(dy, x, ones=ones, rstd=rstd):
            return torch.ops.aten._fused_rms_norm_backward(
                dy, x, [x.shape[1]], rstd, ones, [True, True])

        yield "gelu", n, F.gelu, [size], bf16
        yield ("sum", f"{shape}/bf16", lambda x: x.sum(-1), [size], bf16)
        yield ("sum", f"{shape}/axis=rows/bf16", lambda x: x.sum(0), [size],
               bf16)
        yield ("transpose", f"{shape}/bf16", lambda x: x.t().contiguous(),
               [size], bf16)
        yield ("layer_norm", f"{shape}/bf16",
               lambda x, g, b: F.layer_norm(x, (x.shape[1],), g, b),
               [size, (cols,), (cols,)], bf16)
        yield ("rms_norm", f"{shape}/bf16",
               lambda x, g: F.rms_norm(x, (x.shape[1],), g, 1e-5),
               [size, (cols,)], bf16)
        yield ("layer_norm_backward", f"{shape}/bf16", layer_norm_backward,
               [size, size], bf16)
        yield ("rms_norm_backward", f"{shape}/bf16", rms_norm_backward,
               [size, size], bf16)


def bag_cases():
    for rows, cols, bags, lookups, skewed, dtype, name in [
            (1000000, 64, 4096, 32, False, torch.float32, "f32"),
            (1000000, 128, 8192, 20, False, torch.float16, "f16"),
            (1000000, 128, 8192, 20, True, torch.float16, "f16")]:

        def indices(rows=rows, bags=bags, lookups=lookups, skewed=skewed):
            u = torch.rand(bags, lookups, device="cuda", dtype=torch.float64)
            return (rows * u**(8 if skewed else 1)).to(torch.int32)

        yield ("embedding_bag",
               f"rows={rows},cols={cols},bags={bags},lookups={lookups}" +
               ("/indices=skewed" if skewed else "") + "/" + name,
               lambda table, at: F.embedding_bag(at, table, mode="sum"),
               [(rows, cols), indices], dtype)


def linear_cases():
    bf16 = torch.bfloat16
    for m, n, k, activation in [(4096, 1024, 1024, "none"),
                                (4096, 4096, 1024, "gelu"),
                                (4096, 1024, 4096, "none"),
                                (4096, 4096, 1024, "relu"),
                                (384, 4096, 1024, "gelu"),
                                (384, 1024, 4096, "none")]:
        f = {"gelu": F.gelu, "relu": F.relu, "none": lambda x: x}[activation]
        attribute = "" if activation == "none" else f"/activation={activation}"
        yield ("linear", f"m={m},n={n},k={k}{attribute}/bf16",
               lambda x, w, b, f=f: f(torch.addmm(b, x, w)),
               [(m, k), (k, n), (n,)], bf16)


def batched_cases():
    """Scores and context of attention (BERT-large), backward products."""
    bf16 = torch.bfloat16
    for batch, m, n, k, transposed in [(16, 384, 384, 64, "b"),
                                       (16, 384, 64, 384, ""),
                                       (128, 512, 512, 64, "b"),
                                       (128, 512, 64, 512, ""),
                                       (128, 512, 64, 512, "a"),
                                       (512, 27, 27, 128, "b")]:

        def multiply(a, b, transposed=transposed):
            return torch.bmm(a.mT if transposed == "a" else a,
                             b.mT if transposed == "b" else b)

        attribute = f"/transposed={transposed}" if transposed else ""
        yield ("batched_matmul",
               f"batch={batch},m={m},n={n},k={k}{attribute}/bf16", multiply,
               [(batch, k, m) if transposed == "a" else (batch, m, k),
                (batch, n, k) if transposed == "b" else (batch, k, n)], bf16)


def training_cases():
    """What a training step of BERT-large has beside (bert_large_half)."""
    bf16 = torch.bfloat16
    for m, n, k, transposed in [(4096, 1024, 1024, "b"),
                                (1024, 1024, 4096, "a"),
                                (4096, 1024, 4096, "b"),
                                (1024, 4096, 4096, "a"),
                                (4096, 4096, 1024, "b"),
                                (4096, 1024, 4096, "a")]:

        def multiply(a, b, transposed=transposed):
            return torch.mm(a.mT, b) if transposed == "a" else torch.mm(a, b.mT)

        yield ("batched_matmul",
               f"batch=1,m={m},n={n},k={k}/transposed={transposed}/bf16",
               multiply, [(k, m) if transposed == "a" else (m, k),
                          (n, k) if transposed == "b" else (k, n)], bf16)
    yield ("layer_norm", "rows=4096,cols=1024/statistics=written/bf16",
           lambda x, g, b: torch.ops.aten.native_layer_norm(
               x, [x.shape[1]], g, b, 1e-5),
           [(4096, 1024), (1024,), (1024,)], bf16)
    yield ("sum", "rows=4096,cols=4096/axis=rows/bf16", lambda x: x.sum(0),
           [(4096, 4096)], bf16)
    yield "gelu", "n=16777216/bf16", F.gelu, [(16777216,)], bf16
    yield "add", "n=4194304/bf16", torch.add, [(4194304,)] * 2, bf16


def convolution(h, c, k, r, padding, stride, dtype, name):
    """Of 32 images, channels last, as cuDNN wants filters: [k, r, s, c]. Alone
    and with what follows it in a network."""
    attributes = ([f"padding={padding}"] if padding else []) + (
        [f"stride={stride}"] if stride > 1 else [])
    shape = (f"n=32,h={h},w={h},c={c},k={k},r={r},s={r}" +
             "".join(["/" + ",".join(attributes)] if attributes else []) +
             "/" + name)

    def convolve(x, weights):
        return F.conv2d(x.permute(0, 3, 1, 2), weights.permute(0, 3, 1, 2),
                        stride=stride, padding=padding)

    def fused(x, weights, scale, shift):
        y = convolve(x, weights) * scale[:, None, None]
        return F.relu(y + shift[:, None, None])

    yield "conv2d", shape, convolve, [(32, h, h, c), (k, r, r, c)], dtype
    yield ("conv_bn_relu", shape, fused,
           [(32, h, h, c), (k, r, r, c), (k,), (k,)], dtype)


def convolution_cases():
    for h, c, k, r, padding, stride in [(56, 64, 64, 3, 1, 1),
                                        (28, 128, 128, 3, 1, 1),
                                        (14, 256, 256, 3, 1, 1),
                                        (7, 512, 512, 3, 1, 1),
                                        (56, 64, 256, 1, 0, 1),
                                        (56, 256, 64, 1, 0, 1),
                                        (56, 128, 128, 3, 1, 2),
                                        (224, 3, 64, 7, 3, 2)]:
        yield from convolution(h, c, k, r, padding, stride, torch.float16,
                               "f16")


def resnet_cases():
    """What resnet50_32_half has."""
    bf16 = torch.bfloat16
    yield from convolution(224, 3, 64, 7, 3, 2, bf16, "bf16")
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
            yield from convolution(*layer, bf16, "bf16")
        n = 32 * h * h * wide
        yield "add", f"n={n}/bf16", torch.add, [(n,)] * 2, bf16
    yield "relu", "n=6422528/bf16", F.relu, [(6422528,)], bf16
    yield ("linear", "m=32,n=1000,k=2048/bf16",
           lambda x, w, b: torch.addmm(b, x, w),
           [(32, 2048), (2048, 1000), (1000,)], bf16)


def llama_cases():
    """What llama3_8b_{prefill,decode}_half have beside attention_cases."""
    bf16 = torch.bfloat16
    sizes = [(4096, 4096), (1024, 4096), (14336, 4096), (4096, 14336)]
    for m, n, k in [(m, n, k) for m in (1, 512) for n, k in sizes] + [
            (1, 128256, 4096)] + [(m, n, k) for m in (1, 16)
                                  for n in (1024, 2048, 3072)
                                  for k in (2048, 4096)]:
        yield ("matmul", f"m={m},n={n},k={k}/bf16", torch.matmul,
               [(m, k), (k, n)], bf16)
    yield ("rms_norm", "rows=512,cols=4096/bf16",
           lambda x, g: F.rms_norm(x, (x.shape[1],), g, 1e-5),
           [(512, 4096), (4096,)], bf16)
    yield "add", "n=2097152/bf16", torch.add, [(2097152,)] * 2, bf16


def attention_cases():
    bf16 = torch.bfloat16
    for batch, heads, queries, keys, d, causal, group in [
            (8, 16, 512, 512, 64, False, 1), (4, 16, 4096, 4096, 64, False, 1),
            (4, 16, 4096, 4096, 128, True, 1),
            (1, 32, 8192, 8192, 128, True, 1),
            (1, 16, 16384, 16384, 128, False, 1),
            (1, 32, 512, 512, 128, True, 4), (1, 32, 1, 2048, 128, False, 4),
            (8, 32, 1, 8192, 128, False, 4)]:
        attributes = (["causal=yes"] if causal else []) + (
            [f"group={group}"] if group > 1 else [])
        yield ("attention",
               f"batch={batch},heads={heads},queries={queries},keys={keys},"
               f"d={d}" + "".join(["/" + ",".join(attributes)] if attributes
                                  else []) + "/bf16",
               lambda q, k, v, causal=causal, group=group:
               F.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                              enable_gqa=group > 1),
               [(batch, heads, queries, d), (batch, heads // group, keys, d),
                (batch, heads // group, keys, d)], bf16)


def cases():
    yield from matrix_cases()
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
            torch.randn(size, device="cuda", dtype=dtype) for size in sizes]


def bytes_of(result):
    results = result if isinstance(result, (tuple, list)) else [result]
    return sum(t.nbytes for t in results)
