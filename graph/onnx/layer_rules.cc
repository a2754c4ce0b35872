// Products, convolutions and pooling.

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/ir/ops.h"
#include "graph/onnx/conv_windows.h"
#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

Results Matmul(NodeImport& node) {
  return {node.Emit("matmul", {node.In(0), node.In(1)})};
}

int Transposed(NodeImport& node, int x, bool yes) {
  return yes ? node.Transpose(x, {1, 0}) : x;
}

int Scaled(NodeImport& node, int x, double factor) {
  return factor == 1 ? x : node.Emit("mul", {x, node.Scalar(x, factor)});
}

Results Gemm(NodeImport& node) {
  const int a = node.In(0), b = node.In(1);
  if (!node.ok()) return {};
  if (node.rank(a) != 2 || node.rank(b) != 2) {
    node.Wrong(absl::StrCat(TypeText(node.type(a)), " x ",
                            TypeText(node.type(b)), ": expected matrices"));
    return {};
  }
  const int product =
      node.Emit("matmul", {Transposed(node, a, node.Int("transA", 0) != 0),
                           Transposed(node, b, node.Int("transB", 0) != 0)});
  const int scaled = Scaled(node, product, node.Real("alpha", 1));
  if (!node.Has(2) || node.Real("beta", 1) == 0) return {scaled};
  return {node.Emit("add",
                    {scaled, Scaled(node, node.In(2), node.Real("beta", 1))})};
}

// --- Windows
// ------------------------------------------------------------------

Results Conv(NodeImport& node) {
  return {EmitConv(node, node.In(0), node.In(1), node.InOr(2))};
}

Results ConvTranspose(NodeImport& node) {
  const int x = node.In(0), weights = node.In(1);
  const Dims kernel = KernelOf(node, weights);
  if (!node.ok()) return {};
  const size_t spatial = kernel.size();
  const Dims more = node.Ints("output_padding", Dims(spatial, 0));
  const std::string automatic = node.Text("auto_pad", "NOTSET");
  const Dims strides = node.Ints("strides", Dims(spatial, 1));
  const Dims dilations = node.Ints("dilations", Dims(spatial, 1));
  const Dims pads = node.Ints("pads", Dims(2 * spatial, 0));
  Dims shape = node.Ints("output_shape");
  if (more.size() != spatial || strides.size() != spatial ||
      dilations.size() != spatial || pads.size() != 2 * spatial ||
      node.rank(x) != static_cast<int>(spatial) + 2 ||
      (!shape.empty() && shape.size() < spatial)) {
    node.Wrong("strides, dilations, pads or output_padding do not fit");
    return {};
  }
  shape.erase(shape.begin(),
              shape.begin() + (shape.empty() ? 0 : shape.size() - spatial));
  Dims begin(pads.begin(), pads.begin() + spatial);
  Dims end(pads.begin() + spatial, pads.end());
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t size = node.dims(x)[2 + d];
    if (std::max({strides[d], dilations[d], kernel[d], more[d]}) > (1 << 20)) {
      node.Wrong("a stride, dilation or kernel is too large");
      return {};
    }
    const int64_t whole =
        strides[d] * (size - 1) + more[d] + (kernel[d] - 1) * dilations[d] + 1;
    if (shape.empty() && (automatic == "NOTSET" || automatic == "VALID")) {
      continue;
    }
    const int64_t wanted = shape.empty() ? size * strides[d] : shape[d];
    const int64_t total = whole - wanted;
    // The odd one is cut off at the end for SAME_UPPER only. Rounded down,
    // since a larger shape than the whole makes it negative.
    const int64_t half = (total - (total % 2 != 0 && total < 0)) / 2;
    begin[d] = automatic == "SAME_UPPER" ? half : total - half;
    end[d] = total - begin[d];
  }
  std::vector<int> operands = {x, weights};
  if (node.Has(2)) operands.push_back(node.In(2));
  return {node.Emit("conv_transpose", operands,
                    {{"strides", strides},
                     {"begin", begin},
                     {"end", end},
                     {"dilations", dilations},
                     {"output_padding", more},
                     {"group", node.Int("group", 1)}})};
}

Results Pool(NodeImport& node, const char* op) {
  const int x = node.In(0);
  if (!node.HasAttribute("kernel_shape")) node.Wrong("has no kernel_shape");
  const Windows windows = WindowsOf(node, x, node.Ints("kernel_shape"));
  Attributes attributes = windows.attributes();
  attributes["kernel"] = windows.kernel;
  attributes["ceil"] = node.Int("ceil_mode", 0);
  attributes["count_padding"] = node.Int("count_include_pad", 0);
  attributes["column_major"] = node.Int("storage_order", 0);
  const int y = node.Emit(op, {x}, attributes);
  return {y, node.ok() ? y + 1 : y};
}

Results AveragePool(NodeImport& node) { return {Pool(node, "avg_pool")[0]}; }

Results MaxPool(NodeImport& node) { return Pool(node, "max_pool"); }

// |x|^p, and its root.
int Power(NodeImport& node, int x, double p) {
  return node.Emit("pow", {node.Emit("abs", {x}), node.Scalar(x, p)});
}

// In opset 1 it is a real number.
double PowerOf(const NodeImport& node) {
  return node.opset() < 2 ? node.Real("p", 2)
                          : static_cast<double>(node.Int("p", 2));
}

// A mean that counts the padding, times the size of the window, is a sum.
Results LpPool(NodeImport& node) {
  const int x = node.In(0);
  const double p = PowerOf(node);
  if (!node.HasAttribute("kernel_shape")) node.Wrong("has no kernel_shape");
  if (!(p >= 1)) node.Wrong(absl::StrCat("p is ", p, "; expected 1 or more"));
  if (node.Int("ceil_mode", 0) != 0) node.NotCovered("ceil_mode");
  if (!node.ok()) return {};
  const Windows windows = WindowsOf(node, x, node.Ints("kernel_shape"));
  Attributes attributes = windows.attributes();
  attributes["kernel"] = windows.kernel;
  attributes["ceil"] = int64_t{0};
  attributes["count_padding"] = int64_t{1};
  attributes["column_major"] = int64_t{0};
  const int mean = node.Emit("avg_pool", {Power(node, x, p)}, attributes);
  if (!node.ok()) return {};
  const int sum = node.Emit(
      "mul",
      {mean, node.Scalar(x, static_cast<double>(Elements(windows.kernel)))});
  return {node.Emit("pow", {sum, node.Scalar(x, 1 / p)})};
}

Results GlobalLpPool(NodeImport& node) {
  const int x = node.In(0);
  const double p = PowerOf(node);
  if (!(p >= 1)) node.Wrong(absl::StrCat("p is ", p, "; expected 1 or more"));
  if (!node.ok()) return {};
  Dims axes;
  for (int64_t d = 2; d < node.rank(x); ++d) axes.push_back(d);
  const int sum = node.Reduce("reduce_sum", Power(node, x, p), axes, true);
  return {node.Emit("pow", {sum, node.Scalar(x, 1 / p)})};
}

// The dimensions of what was pooled: as the third operand says, else the
// smallest that fit the windows.
Dims DimsBeforePooling(NodeImport& node, int x) {
  Dims dims = node.dims(x);
  if (node.Has(2)) {
    Dims given = node.KnownInts(2, "the output's shape");
    if (node.ok() && given.size() != dims.size()) {
      node.Wrong(absl::StrCat("the output's shape has ", given.size(),
                              " dimensions for ", TypeText(node.type(x))));
    }
    return given;
  }
  const Dims kernel = node.Ints("kernel_shape");
  const Dims strides = node.Ints("strides", Dims(kernel.size(), 1));
  const Dims pads = node.Ints("pads", Dims(2 * kernel.size(), 0));
  if (kernel.empty() || dims.size() != kernel.size() + 2 ||
      strides.size() != kernel.size() || pads.size() != 2 * kernel.size()) {
    node.Wrong(absl::StrCat("kernel_shape, strides or pads do not fit ",
                            TypeText(node.type(x))));
    return dims;
  }
  for (size_t d = 0; d < kernel.size(); ++d) {
    const int64_t begin = pads[d], end = pads[d + kernel.size()];
    if (std::max({kernel[d], strides[d], begin, end}) > (1 << 20) ||
        std::min({kernel[d] - 1, strides[d] - 1, begin, end}) < 0) {
      node.Wrong(absl::StrCat("a window of ", kernel[d], ", stride ",
                              strides[d], ", padding ", begin, ",", end));
      return dims;
    }
    dims[2 + d] = (dims[2 + d] - 1) * strides[d] + kernel[d] - begin - end;
  }
  return dims;
}

// Zeros but for the maxima, at their places in the flat result.
Results MaxUnpool(NodeImport& node) {
  const int x = node.In(0), at = node.In(1);
  if (!node.ok()) return {};
  if (!(node.type(at) == TensorType{proto::ELEMENT_I64, node.dims(x)})) {
    node.Wrong(absl::StrCat("places are ", TypeText(node.type(at)), " for ",
                            TypeText(node.type(x))));
    return {};
  }
  const Dims to = DimsBeforePooling(node, x);
  if (!node.ok()) return {};
  const absl::Status status = CheckDims(to);
  if (!status.ok()) {
    node.Wrong(status.message());
    return {};
  }
  const Dims flat = {Elements(node.dims(x))};
  const int y = node.Emit("scatter_elements",
                          {node.Expand(node.Scalar(x, 0), {Elements(to)}),
                           node.Reshape(at, flat), node.Reshape(x, flat)},
                          {{"axis", int64_t{0}}, {"reduction", std::string()}});
  return {node.Reshape(y, to)};
}

Results Global(NodeImport& node, const char* op) {
  const int x = node.In(0);
  Dims axes;
  for (int64_t d = 2; d < node.rank(x); ++d) axes.push_back(d);
  return {node.Reduce(op, x, axes, true)};
}

// --- Einsum
// -------------------------------------------------------------------

// Products of at most two operands whose indices are letters; sums over those
// that the result lacks.
class Einsum {
 public:
  explicit Einsum(NodeImport& node) : node_(node) {}

  Results Run() {
    std::string equation = node_.Text("equation", "");
    equation.erase(std::remove(equation.begin(), equation.end(), ' '),
                   equation.end());
    std::vector<std::string> sides = absl::StrSplit(equation, "->");
    std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
    if (sides.size() > 2 || terms.size() != node_.inputs()) {
      node_.Wrong(absl::StrCat("equation=", equation));
      return {};
    }
    if (terms.size() > 2) {
      node_.NotCovered("more than two operands");
      return {};
    }
    for (size_t i = 0; i < terms.size(); ++i) {
      if (!Spell(terms[i], node_.In(static_cast<int>(i)))) return {};
    }
    std::string result = sides.size() == 2 ? sides[1] : Implicit(terms);
    SpellResult(result);
    if (terms.size() == 1) return {Ordered(node_.In(0), terms[0], result)};
    return {Product(terms[0], terms[1], result)};
  }

 private:
  // "..." becomes capital letters of its own, and sizes are noted.
  bool Spell(std::string& term, int value) {
    if (!node_.ok()) return false;
    const size_t dots = term.find("...");
    if (dots != std::string::npos) {
      const int more = node_.rank(value) - static_cast<int>(term.size() - 3);
      if (more < 0 || more > 10) {
        node_.Wrong(absl::StrCat("term ", term));
        return false;
      }
      // Aligned at the end, as broadcasting is.
      std::string letters;
      for (int i = more; i-- > 0;) letters += static_cast<char>('0' + i);
      if (letters.size() > batch_.size()) batch_ = letters;
      term.replace(dots, 3, letters);
    }
    if (static_cast<int>(term.size()) != node_.rank(value)) {
      node_.Wrong(
          absl::StrCat("term ", term, " for ", TypeText(node_.type(value))));
      return false;
    }
    for (size_t d = 0; d < term.size(); ++d) {
      int64_t& size = sizes_.emplace(term[d], 1).first->second;
      const int64_t here = node_.dims(value)[d];
      if (size != 1 && here != 1 && size != here) {
        node_.Wrong(
            absl::StrCat("index ", term.substr(d, 1), " has two sizes"));
        return false;
      }
      size = std::max(size, here);
      if (here == 0) size = 0;
    }
    return true;
  }

  void SpellResult(std::string& result) {
    const size_t dots = result.find("...");
    if (dots != std::string::npos) result.replace(dots, 3, batch_);
    for (const char c : result) {
      if (sizes_.count(c) == 0) node_.Wrong("the result has an unknown index");
    }
  }

  static std::string Implicit(const std::vector<std::string>& terms) {
    std::map<char, int> count;
    std::string result, digits;
    for (const std::string& term : terms) {
      for (const char c : term) ++count[c];
    }
    for (const auto& [c, times] : count) {
      if (c >= '0' && c <= '9') {
        digits.insert(digits.begin(), c);
      } else if (times == 1) {
        result += c;
      }
    }
    return digits + result;
  }

  // An index that stands twice in a term walks along the diagonal.
  int Diagonal(int value, std::string& term) {
    for (size_t i = 0; i < term.size(); ++i) {
      const size_t j = term.find(term[i], i + 1);
      if (j == std::string::npos || !node_.ok()) continue;
      Dims dims = node_.dims(value);
      const int64_t n = dims[i];
      if (dims[j] != n) {
        node_.Wrong("a repeated index has two sizes");
        return value;
      }
      Dims places(n), along(dims.size(), 1), to = dims;
      for (int64_t k = 0; k < n; ++k) places[k] = k;
      along[i] = n;
      to[j] = 1;
      const int at = node_.Expand(node_.IntConstant(places, along), to);
      value = node_.Emit("gather_elements", {value, at},
                         {{"axis", static_cast<int64_t>(j)}});
      to.erase(to.begin() + j);
      value = node_.Reshape(value, to);
      term.erase(j, 1);
      --i;
    }
    return value;
  }

  // Sums over what `wanted` lacks and puts the rest in its order.
  int Ordered(int value, std::string term, const std::string& wanted) {
    value = Diagonal(value, term);
    Dims gone;
    std::string left;
    for (size_t d = 0; d < term.size(); ++d) {
      if (wanted.find(term[d]) == std::string::npos) {
        gone.push_back(static_cast<int64_t>(d));
      } else {
        left += term[d];
      }
    }
    if (!gone.empty()) value = node_.Reduce("reduce_sum", value, gone, false);
    Dims perm;
    for (const char c : wanted) {
      const size_t at = left.find(c);
      if (at != std::string::npos) perm.push_back(static_cast<int64_t>(at));
    }
    return node_.Transpose(value, perm);
  }

  int64_t SizeOf(const std::string& indices) const {
    int64_t size = 1;
    for (const char c : indices) size *= sizes_.at(c);
    return size;
  }

  int Grouped(int value, const std::string& term, const std::string& order,
              const Dims& to) {
    Dims full;
    for (const char c : order) full.push_back(sizes_.at(c));
    return node_.Reshape(node_.Expand(Ordered(value, term, order), full), to);
  }

  int Product(std::string a, std::string b, const std::string& result) {
    const auto has = [](const std::string& text, char c) {
      return text.find(c) != std::string::npos;
    };
    // Indices of one operand alone that the result lacks are summed first, by
    // leaving them out of the order.
    std::string batch, rows, cols, summed;
    for (const auto& [c, size] : sizes_) {
      if (has(a, c) && has(b, c)) {
        (has(result, c) ? batch : summed) += c;
      } else if (has(result, c)) {
        (has(a, c) ? rows : cols) += c;
      }
    }
    const int64_t n = SizeOf(batch), m = SizeOf(rows), k = SizeOf(summed),
                  p = SizeOf(cols);
    const int left = Grouped(node_.In(0), a, batch + rows + summed, {n, m, k});
    const int right = Grouped(node_.In(1), b, batch + summed + cols, {n, k, p});
    const int product = node_.Emit("matmul", {left, right});
    Dims full;
    const std::string order = batch + rows + cols;
    for (const char c : order) full.push_back(sizes_.at(c));
    return Ordered(node_.Reshape(product, full), order, result);
  }

  NodeImport& node_;
  std::map<char, int64_t> sizes_;
  std::string batch_;
};

}  // namespace

void AddLayerRules(ImportRules& rules) {
  rules.insert({{"AveragePool", AveragePool},
                {"Conv", Conv},
                {"ConvTranspose", ConvTranspose},
                {"Gemm", Gemm},
                {"GlobalLpPool", GlobalLpPool},
                {"LpPool", LpPool},
                {"MatMul", Matmul},
                {"MaxPool", MaxPool},
                {"MaxUnpool", MaxUnpool}});
  rules["Einsum"] = [](NodeImport& node) { return Einsum(node).Run(); };
  rules["GlobalAveragePool"] = [](NodeImport& node) {
    return Global(node, "reduce_mean");
  };
  rules["GlobalMaxPool"] = [](NodeImport& node) {
    return Global(node, "reduce_max");
  };
}

}  // namespace optrail::graph
