// Convolutions and pooling as CUDA, with a thread for each pixel of the result.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/runner/cuda_codegen.h"

namespace optrail::graph {
namespace {

// The dimensions n, c, h and w of an image as loops, in the order in which it
// lies in memory.
std::string EachPixel(const WindowLoops& l, int64_t* count) {
  std::vector<size_t> order = {0, 1, 2, 3};
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return l.y_strides[a] > l.y_strides[b];
  });
  *count = Elements(l.y_dims);
  return absl::StrCat(GridLoop("int64_t", *count),
                      Decompose("int64_t", "i", order, l.y_dims, "    "),
                      "    const int64_t h = i2 * ", l.stride[0], " - ",
                      l.begin[0], ", w = i3 * ", l.stride[1], " - ", l.begin[1],
                      ";\n");
}

std::string TapLoops(const WindowLoops& l) {
  return absl::StrCat(
      "    for (int r = 0; r < ", l.kernel[0],
      "; ++r) {\n      const int64_t ih = h + r * ", l.dilation[0],
      ";\n      if (ih < 0 || ih >= ", l.x_dims[2],
      ") continue;\n      for (int s = 0; s < ", l.kernel[1],
      "; ++s) {\n        const int64_t iw = w + s * ", l.dilation[1],
      ";\n        if (iw < 0 || iw >= ", l.x_dims[3],
      ") continue;\n        const auto* const from = x + i0 * ", l.x_strides[0],
      " + ih * ", l.x_strides[2], " + iw * ", l.x_strides[3], ";\n");
}

}  // namespace

GeneratedKernel CudaConv(const WindowLoops& l) {
  const int64_t filters = l.y_dims[1], k = filters / l.group;
  const int64_t c = l.x_dims[1] / l.group;
  int64_t count = 0;
  std::string text = absl::StrCat(
      ReadPointer("x", l.type, 0), ReadPointer("weights", l.type, 1),
      l.has_bias ? ReadPointer("bias", l.type, 2) : "",
      YPointer(l.type, l.has_bias ? 3 : 2), EachPixel(l, &count),
      "    float sum = ", l.has_bias ? "bias[i1]" : "0", ";\n", TapLoops(l),
      "        const auto* const by = weights + (r * ", l.kernel[1], " + s) * ",
      c * filters, " + i1;\n        for (int64_t j = 0; j < ", c,
      "; ++j) sum += float(from[(i1 / ", k, " * ", c, " + j) * ",
      l.x_strides[1], "]) * float(by[j * ", filters,
      "]);\n      }\n    }\n    y[", Place(l.y_strides), "] = sum;\n  }\n");
  return {text, CudaBlocks(count), kCudaThreads};
}

GeneratedKernel CudaPool(const WindowLoops& l, bool maximum,
                         bool count_padding) {
  int64_t count = 0;
  std::string text = absl::StrCat(
      ReadPointer("x", l.type, 0), YPointer(l.type, 1), EachPixel(l, &count),
      "    float best = ", maximum ? "Least<float>()" : "0", ", count = 0;\n");
  if (count_padding) {
    // Counts elements of the image and of its padding.
    absl::StrAppend(&text, "    for (int r = 0; r < ", l.kernel[0],
                    "; ++r) {\n      for (int s = 0; s < ", l.kernel[1],
                    "; ++s) {\n        count += h + r * ", l.dilation[0], " < ",
                    l.x_dims[2] + l.end[0], " && w + s * ", l.dilation[1],
                    " < ", l.x_dims[3] + l.end[1], ";\n      }\n    }\n");
  }
  absl::StrAppend(
      &text, TapLoops(l), count_padding ? "" : "        count += 1;\n",
      "        const float value = from[i1 * ", l.x_strides[1],
      "];\n        best = ", maximum ? "op_max(best, value)" : "best + value",
      ";\n      }\n    }\n    y[", Place(l.y_strides),
      "] = ", maximum ? "best" : "best / count", ";\n  }\n");
  return {text, CudaBlocks(count), kCudaThreads};
}

}  // namespace optrail::graph
