"""The `operator` macro for y[i] = f(x[i]): ops/elementwise/elementwise.h."""

load("//ops:backend_files.bzl", "there")
load("//ops:operator.bzl", "operator")

def elementwise_operator(name, onednn = None, cuda = None, **kwargs):
    """Declares the operator of a folder that has NAME.cc, NAME_cpu.cc and NAME.shapes.textproto.

    Args:
      name: as Operator::name() gives it.
      onednn: not looked at: NAME_onednn.cc is found where it exists.
      cuda: not looked at: NAME_cuda.cc and NAME_cuda.cu are.
      **kwargs: as of `operator`.
    """
    operator(
        name = name,
        # Nothing but the tail depends on the shape.
        sampled_configs = 2,
        space = str(Label("//ops/elementwise:elementwise.space.textproto")),
        spaces = {
            "cuda": str(Label("//ops/elementwise:elementwise_cuda.space.textproto")),
        } if there(name + "_cuda.cc") else {},
        **kwargs
    )
