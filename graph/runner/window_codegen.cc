// Convolutions and windows in two spatial dimensions: loops around a line of
// channels, which lie one behind the other where images are channels-last.

#include "absl/strings/str_cat.h"
#include "graph/runner/cpp_codegen.h"

namespace optrail::graph {
namespace {

// Loops over the pixels of y; inside, h and w are where the window begins.
std::string PixelLoops(const WindowLoops& l) {
  const int64_t lines = l.y_dims[0] * l.y_dims[2];
  return absl::StrCat(
      "  call.ParallelFor(", lines, ", [&](int64_t line) {\n",
      "    const int64_t n = line / ", l.y_dims[2], ", oh = line % ",
      l.y_dims[2], ";\n    for (int64_t ow = 0; ow < ", l.y_dims[3],
      "; ++ow) {\n      const int64_t h = oh * ", l.stride[0], " - ",
      l.begin[0], ", w = ow * ", l.stride[1], " - ", l.begin[1], ";\n");
}

// Loops over the elements of the window that lie on the image; inside, `from`
// is where their first channel is.
std::string TapLoops(const WindowLoops& l) {
  return absl::StrCat(
      "      for (int64_t r = 0; r < ", l.kernel[0],
      "; ++r) {\n        const int64_t ih = h + r * ", l.dilation[0],
      ";\n        if (ih < 0 || ih >= ", l.x_dims[2],
      ") continue;\n        for (int64_t s = 0; s < ", l.kernel[1],
      "; ++s) {\n          const int64_t iw = w + s * ", l.dilation[1],
      ";\n          if (iw < 0 || iw >= ", l.x_dims[3],
      ") continue;\n          const float* const from = x + n * ",
      l.x_strides[0], " + ih * ", l.x_strides[2], " + iw * ", l.x_strides[3],
      ";\n");
}

std::string PixelOf(const WindowLoops& l) {
  return absl::StrCat("y + n * ", l.y_strides[0], " + oh * ", l.y_strides[2],
                      " + ow * ", l.y_strides[3]);
}

constexpr char kTapEnd[] = "        }\n      }\n";
constexpr char kPixelEnd[] = "    }\n  });\n";

}  // namespace

std::string CppConvSource(const WindowLoops& l) {
  const int64_t filters = l.y_dims[1], channels = l.x_dims[1];
  const int64_t k = filters / l.group, c = channels / l.group;
  std::string text = absl::StrCat(
      "  const auto* const x = static_cast<const float*>(p[0]);\n"
      "  const auto* const weights = static_cast<const float*>(p[1]);\n",
      l.has_bias
          ? "  const auto* const bias = static_cast<const float*>(p[2]);\n"
          : "",
      "  auto* const y = static_cast<float*>(p[", l.has_bias ? 3 : 2, "]);\n",
      PixelLoops(l), "      float sum[", filters, "];\n");
  absl::StrAppend(&text, "      for (int64_t f = 0; f < ", filters,
                  "; ++f) sum[f] = ", l.has_bias ? "bias[f]" : "0", ";\n",
                  TapLoops(l));
  absl::StrAppend(&text, "          const float* const by = weights + (r * ",
                  l.kernel[1], " + s) * ", c * filters, ";\n");
  if (c == 1 && k == 1) {
    absl::StrAppend(&text, "          for (int64_t f = 0; f < ", filters,
                    "; ++f) sum[f] += from[f * ", l.x_strides[1],
                    "] * by[f];\n");
  } else {
    absl::StrAppend(&text, "          for (int64_t g = 0; g < ", l.group,
                    "; ++g) {\n            for (int64_t j = 0; j < ", c,
                    "; ++j) {\n              const float value = from[(g * ", c,
                    " + j) * ", l.x_strides[1],
                    "];\n              for (int64_t f = 0; f < ", k,
                    "; ++f) sum[g * ", k, " + f] += value * by[j * ", filters,
                    " + g * ", k, " + f];\n            }\n          }\n");
  }
  absl::StrAppend(&text, kTapEnd, "      float* const to = ", PixelOf(l),
                  ";\n      for (int64_t f = 0; f < ", filters,
                  "; ++f) to[f * ", l.y_strides[1], "] = sum[f];\n", kPixelEnd);
  return text;
}

std::string CppPoolSource(const WindowLoops& l, bool maximum,
                          bool count_padding) {
  const int64_t channels = l.x_dims[1];
  std::string text = absl::StrCat(
      "  const auto* const x = static_cast<const float*>(p[0]);\n"
      "  auto* const y = static_cast<float*>(p[1]);\n",
      PixelLoops(l), "      float* const to = ", PixelOf(l),
      ";\n      float count = 0;\n      for (int64_t c = 0; c < ", channels,
      "; ++c) to[c * ", l.y_strides[1],
      "] = ", maximum ? "-std::numeric_limits<float>::infinity()" : "0", ";\n");
  if (count_padding) {
    // Counts elements of the image and of its padding.
    absl::StrAppend(&text, "      for (int64_t r = 0; r < ", l.kernel[0],
                    "; ++r) {\n        for (int64_t s = 0; s < ", l.kernel[1],
                    "; ++s) {\n          count += h + r * ", l.dilation[0],
                    " < ", l.x_dims[2] + l.end[0], " && w + s * ",
                    l.dilation[1], " < ", l.x_dims[3] + l.end[1],
                    ";\n        }\n      }\n");
  }
  absl::StrAppend(&text, TapLoops(l),
                  count_padding ? "" : "          count += 1;\n",
                  "          for (int64_t c = 0; c < ", channels,
                  "; ++c) {\n            const float value = from[c * ",
                  l.x_strides[1], "];\n            float& best = to[c * ",
                  l.y_strides[1], "];\n            best = ",
                  maximum ? "op_max(best, value)" : "best + value",
                  ";\n          }\n", kTapEnd);
  if (!maximum) {
    absl::StrAppend(&text, "      for (int64_t c = 0; c < ", channels,
                    "; ++c) to[c * ", l.y_strides[1], "] /= count;\n");
  }
  return text + kPixelEnd;
}

}  // namespace optrail::graph
