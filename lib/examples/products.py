"""A product, a softmax and a convolution by liboptrail, beside NumPy."""

import numpy
import optrail

random = numpy.random.default_rng(1)
with optrail.Store() as store:
    a, b = (random.standard_normal(size, dtype=numpy.float32)
            for size in ((96, 64), (64, 80)))
    product = optrail.Plan("matmul", optrail.shape_text("matmul", [96, 80, 64]), store=store)
    c = product(a, b)
    error = abs(c - a.astype(float) @ b).max()

    y = optrail.Plan("softmax", "rows=96,cols=80/f32", store=store)(c)
    exact = numpy.exp(c.astype(float))
    probability = abs(y - exact / exact.sum(axis=1, keepdims=True)).max()

    x, w = (random.standard_normal(size, dtype=numpy.float32)
            for size in ((2, 9, 8, 5), (3, 3, 5, 7)))
    shape = "n=2,h=9,w=8,c=5,k=7,r=3,s=3/padding=1/f32"
    threads = optrail.Threads(2)
    z = optrail.Plan("conv2d", shape, store=store, threads=2)(x, w, threads=threads)
    padded = numpy.pad(x.astype(float), ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    pixel = abs(z - numpy.einsum("nhwcrs,rsck->nhwk", windows, w)).max()

print(f"largest errors: matmul {error:.1e}, softmax {probability:.1e}, conv2d {pixel:.1e}")
wrong = error > 1e-4 or probability > 1e-5 or pixel > 1e-4
raise SystemExit(1 if wrong else 0)
