#include "graph/onnx/conv_windows.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace optrail::graph {

Windows WindowsOf(NodeImport& node, int x, const Dims& kernel) {
  const size_t spatial = kernel.size();
  Windows w{kernel,
            node.Ints("strides", Dims(spatial, 1)),
            {},
            {},
            node.Ints("dilations", Dims(spatial, 1))};
  const Dims pads = node.Ints("pads", Dims(2 * spatial, 0));
  if (w.strides.size() != spatial || w.dilations.size() != spatial ||
      pads.size() != 2 * spatial ||
      node.rank(x) != static_cast<int>(spatial) + 2) {
    node.Wrong(absl::StrCat("strides, dilations or pads do not fit ", spatial,
                            " dimensions of ", TypeText(node.type(x))));
    return w;
  }
  w.begin.assign(pads.begin(), pads.begin() + spatial);
  w.end.assign(pads.begin() + spatial, pads.end());
  const std::string automatic = node.Text("auto_pad", "NOTSET");
  for (size_t d = 0; d < spatial && automatic != "NOTSET"; ++d) {
    const int64_t size = node.dims(x)[2 + d], stride = w.strides[d];
    if (stride < 1 ||
        std::max({kernel[d], w.dilations[d], stride}) > (1 << 30)) {
      node.Wrong(absl::StrCat("stride ", stride, " of ", kernel[d]));
      return w;
    }
    // The result has ceil(size / stride) places.
    const int64_t reach = (kernel[d] - 1) * w.dilations[d] + 1;
    const int64_t count = (size + stride - 1) / stride;
    const int64_t total =
        automatic == "VALID"
            ? 0
            : std::max<int64_t>((count - 1) * stride + reach - size, 0);
    w.begin[d] = automatic == "SAME_LOWER" ? total - total / 2 : total / 2;
    w.end[d] = total - w.begin[d];
  }
  return w;
}

Dims KernelOf(NodeImport& node, int weights) {
  if (!node.ok() || node.rank(weights) < 3) {
    node.Wrong(absl::StrCat("the weights are ", TypeText(node.type(weights))));
    return {};
  }
  const Dims& dims = node.dims(weights);
  const Dims kernel(dims.begin() + 2, dims.end());
  if (node.Ints("kernel_shape", kernel) != kernel) {
    node.Wrong(absl::StrCat("kernel_shape is not that of ",
                            TypeText(node.type(weights))));
  }
  return kernel;
}

int EmitConv(NodeImport& node, int x, int weights, int bias) {
  const Windows windows = WindowsOf(node, x, KernelOf(node, weights));
  Attributes attributes = windows.attributes();
  attributes["group"] = node.Int("group", 1);
  std::vector<int> operands = {x, weights};
  if (bias >= 0) operands.push_back(bias);
  return node.Emit("conv", operands, attributes);
}

}  // namespace optrail::graph
