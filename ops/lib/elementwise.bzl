"""The `operator` macro for y[i] = f(x[i]): ops/lib/elementwise.h."""

load("//ops:operator.bzl", "operator")

def elementwise_operator(name, onednn = False, cuda = False, deps = [], **kwargs):
    """Declares the operator of a folder that has NAME.cc, NAME_cpu.cc and NAME.shapes.textproto.

    Args:
      name: as Operator::name() gives it.
      onednn: the folder has NAME_onednn.cc, too.
      cuda: it has NAME_cuda.cc and NAME_cuda.cu, too.
      deps: as of `operator`.
      **kwargs: as of `operator`.
    """
    operator(
        name = name,
        srcs = [name + ".cc"],
        backends = {"onednn": [name + "_onednn.cc"]} if onednn else {},
        cpu = [name + "_cpu.cc"],
        cuda = [
            name + "_cuda.cc",
            name + "_cuda.cu",
            str(Label("//ops/lib:cuda_frame.h")),
            str(Label("//ops/lib:elements.cuh")),
            str(Label("//ops/lib:elementwise.cuh")),
            str(Label("//ops/lib:elementwise_cuda.space.textproto")),
            str(Label("//ops/lib:functions.cuh")),
        ] if cuda else [],
        deps = deps + ([str(Label("//ops/lib:onednn"))] if onednn else []) +
               ([str(Label("//ops/lib:cuda"))] if cuda else []),
        # Nothing but the tail depends on the shape.
        sampled_configs = 2,
        shapes = name + ".shapes.textproto",
        space = str(Label("//ops/lib:elementwise.space.textproto")),
        uses = [
            str(Label("//ops/lib:cpu_frame.h")),
            str(Label("//ops/lib:elementwise-inl.h")),
            str(Label("//ops/lib:gelu-inl.h")),
            str(Label("//ops/lib:normal_cdf_pieces.cc")),
            str(Label("//ops/lib:normal_cdf_pieces.h")),
            str(Label("//ops/lib:simd-inl.h")),
            str(Label("//ops/lib:vector_math-inl.h")),
        ],
        **kwargs
    )
