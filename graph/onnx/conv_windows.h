#ifndef OPTRAIL_GRAPH_ONNX_CONV_WINDOWS_H_
#define OPTRAIL_GRAPH_ONNX_CONV_WINDOWS_H_

// Windows of convolutions and pooling: what the attributes kernel_shape,
// strides, pads, dilations and auto_pad of an ONNX node mean for its operand.
//
//   const Windows windows = WindowsOf(node, x, node.Ints("kernel_shape"));
//   if (node.ok()) node.Emit("avg_pool", {x}, windows.attributes());

#include "graph/onnx/node_import.h"

namespace optrail::graph {

struct Windows {
  Dims kernel, strides, begin, end, dilations;

  Attributes attributes() const {
    return {{"strides", strides},
            {"begin", begin},
            {"end", end},
            {"dilations", dilations}};
  }
};

// `kernel` is what the attribute says, or the weights' dimensions. Fails where
// the attributes do not fit x, which is [n, c, ...].
Windows WindowsOf(NodeImport& node, int x, const Dims& kernel);

// The spatial dimensions of weights [m, c, ...]. Fails where the attribute
// kernel_shape says others.
Dims KernelOf(NodeImport& node, int weights);

// The convolution that the attributes of `node` describe; `bias` is -1 for
// none.
int EmitConv(NodeImport& node, int x, int weights, int bias);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_ONNX_CONV_WINDOWS_H_
