// Quantisation: products of small integers with zero points, and scales between
// them and real numbers.

#include "absl/strings/str_cat.h"
#include "graph/onnx/conv_windows.h"
#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

// A scale or zero point along an axis.
int Along(NodeImport& node, int value, int x) {
  if (!node.ok() || node.rank(value) == 0) return value;
  const int64_t axis = node.Axis(node.Int("axis", 1), node.rank(x));
  return node.AlongAxis(value, axis, node.rank(x));
}

Results DequantizeLinear(NodeImport& node) {
  const int x = node.In(0), scale = node.In(1);
  if (!node.ok()) return {};
  const proto::ElementType real = node.type(scale).type;
  int y = node.Cast(x, real);
  if (node.Has(2)) {
    y = node.Emit("sub", {y, Along(node, node.Cast(node.In(2), real), x)});
  }
  return {node.Emit("mul", {y, Along(node, scale, x)})};
}

Results QuantizeLinear(NodeImport& node) {
  const int x = node.In(0), scale = node.In(1);
  if (!node.ok()) return {};
  const proto::ElementType real = node.type(x).type;
  const proto::ElementType to =
      node.Has(2) ? node.type(node.In(2)).type : proto::ELEMENT_U8;
  int y = node.Emit("round", {node.Emit("div", {x, Along(node, scale, x)})});
  if (node.Has(2)) {
    y = node.Emit("add", {y, Along(node, node.Cast(node.In(2), real), x)});
  }
  // The cast keeps within the type.
  return {node.Cast(y, to)};
}

// Sums of products of 8-bit integers are computed in f64, which is exact up to
// 2^53.
int Centred(NodeImport& node, int value, int zero_point) {
  const int real = node.Cast(value, proto::ELEMENT_F64);
  if (zero_point < 0) return real;
  return node.Emit("sub", {real, node.Cast(zero_point, proto::ELEMENT_F64)});
}

// One for each row of a matrix stands in front of its columns.
int ForRows(NodeImport& node, int value, int matrix) {
  if (value < 0 || !node.ok() || node.rank(value) != 1) return value;
  if (node.dims(value)[0] == 1) return node.Reshape(value, {});
  const int64_t rank = node.rank(matrix);
  return rank < 2 ? value : node.AlongAxis(value, rank - 2, rank);
}

// One for each filter, which are the first dimension of weights and the second
// of a result.
int ForFilters(NodeImport& node, int value, int like, int64_t axis) {
  if (value < 0 || !node.ok() || node.rank(value) == 0) return value;
  if (Elements(node.dims(value)) == 1) return node.Reshape(value, {});
  if (node.rank(value) > 1 || node.rank(like) < 2) {
    node.Wrong(absl::StrCat("a scale or zero point is ",
                            TypeText(node.type(value)),
                            "; expected one number, or one for each filter"));
    return value;
  }
  return node.AlongAxis(value, axis, node.rank(like));
}

Results MatmulInteger(NodeImport& node) {
  const int a = node.In(0), b = node.In(1);
  const int y =
      node.Emit("matmul", {Centred(node, a, ForRows(node, node.InOr(2), a)),
                           Centred(node, b, node.InOr(3))});
  return {node.Cast(y, proto::ELEMENT_I32)};
}

// Padding is zeros behind the zero point, so it stays zeros.
int CentredConv(NodeImport& node, int x, int zero_of_x, int w, int zero_of_w,
                int bias) {
  return EmitConv(node, Centred(node, x, ForFilters(node, zero_of_x, x, 1)),
                  Centred(node, w, ForFilters(node, zero_of_w, w, 0)), bias);
}

Results ConvInteger(NodeImport& node) {
  const int y =
      CentredConv(node, node.In(0), node.InOr(2), node.In(1), node.InOr(3), -1);
  return {node.Cast(y, proto::ELEMENT_I32)};
}

// Operands of QLinearConv and QLinearMatMul, and what their products count for.
struct Quantised {
  int a = -1, scale_of_a = -1, zero_of_a = -1;
  int b = -1, scale_of_b = -1, zero_of_b = -1;
  int scale = -1, zero = -1;  // of the result
};

Quantised QuantisedOf(NodeImport& node) {
  Quantised q{node.In(0), node.In(1), node.In(2), node.In(3),
              node.In(4), node.In(5), node.In(6), node.In(7)};
  for (int* const scale : {&q.scale_of_a, &q.scale_of_b, &q.scale}) {
    *scale = node.Cast(*scale, proto::ELEMENT_F64);
  }
  return q;
}

// Rounds sums of products to the type of the result's zero point, which the
// cast keeps within its range.
int Requantised(NodeImport& node, const Quantised& q, int sums, int scale_of_a,
                int scale_of_b, int scale, int zero) {
  if (!node.ok()) return NodeImport::kFailed;
  const int factor =
      node.Emit("div", {node.Emit("mul", {scale_of_a, scale_of_b}), scale});
  const int y = node.Emit("round", {node.Emit("mul", {sums, factor})});
  return node.Cast(node.Emit("add", {y, node.Cast(zero, proto::ELEMENT_F64)}),
                   node.type(q.zero).type);
}

Results QlinearMatmul(NodeImport& node) {
  const Quantised q = QuantisedOf(node);
  const int sums =
      node.Emit("matmul", {Centred(node, q.a, ForRows(node, q.zero_of_a, q.a)),
                           Centred(node, q.b, q.zero_of_b)});
  return {Requantised(node, q, sums, ForRows(node, q.scale_of_a, sums),
                      q.scale_of_b, ForRows(node, q.scale, sums),
                      ForRows(node, q.zero, sums))};
}

// The bias counts in units of both scales.
Results QlinearConv(NodeImport& node) {
  const Quantised q = QuantisedOf(node);
  const int bias = node.Has(8) ? node.Cast(node.In(8), proto::ELEMENT_F64) : -1;
  const int sums = CentredConv(node, q.a, q.zero_of_a, q.b, q.zero_of_b, bias);
  const auto along = [&](int value) {
    return ForFilters(node, value, sums, 1);
  };
  return {Requantised(node, q, sums, along(q.scale_of_a), along(q.scale_of_b),
                      along(q.scale), along(q.zero))};
}

// The scale maps the range of x, with 0 in it, to that of u8.
Results DynamicQuantizeLinear(NodeImport& node) {
  const int x = node.In(0);
  if (!node.ok()) return {};
  const int zero = node.Scalar(x, 0), most = node.Scalar(x, 255);
  Dims axes;
  for (int64_t d = 0; d < node.rank(x); ++d) axes.push_back(d);
  const int low =
      node.Emit("min", {node.Reduce("reduce_min", x, axes, false), zero});
  const int high =
      node.Emit("max", {node.Reduce("reduce_max", x, axes, false), zero});
  const int scale = node.Emit("div", {node.Emit("sub", {high, low}), most});
  const int point = node.Emit(
      "round", {node.Emit("div", {node.Emit("sub", {zero, low}), scale})});
  const int y = node.Emit(
      "add", {node.Emit("round", {node.Emit("div", {x, scale})}), point});
  return {node.Cast(y, proto::ELEMENT_U8), scale,
          node.Cast(point, proto::ELEMENT_U8)};
}

}  // namespace

void AddQuantiseRules(ImportRules& rules) {
  rules.insert({{"ConvInteger", ConvInteger},
                {"DequantizeLinear", DequantizeLinear},
                {"DynamicQuantizeLinear", DynamicQuantizeLinear},
                {"MatMulInteger", MatmulInteger},
                {"QLinearConv", QlinearConv},
                {"QLinearMatMul", QlinearMatmul},
                {"QuantizeLinear", QuantizeLinear}});
}

}  // namespace optrail::graph
