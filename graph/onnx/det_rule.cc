// Det: Gaussian elimination with partial pivoting, whose steps become nodes.

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

// A step is some twenty nodes.
constexpr int64_t kMostRows = 32;

class Elimination {
 public:
  explicit Elimination(NodeImport& node) : node_(node) {}

  Results Run() {
    int a = node_.In(0);
    if (!node_.ok()) return {};
    Dims batch = node_.dims(a);
    const size_t rank = batch.size();
    if (rank < 2 || batch[rank - 1] != batch[rank - 2]) {
      node_.Wrong(absl::StrCat("the input is ", TypeText(node_.type(a)),
                               "; expected square matrices"));
      return {};
    }
    const int64_t n = batch[rank - 1];
    if (n > kMostRows) {
      node_.NotCovered(absl::StrCat("matrices of ", n, " rows; at most ",
                                    kMostRows, " are covered"));
      return {};
    }
    batch.resize(rank - 2);
    batches_ = Elements(batch);
    a = node_.Reshape(a, {batches_, n, n});
    int det = node_.Expand(node_.Scalar(a, 1), {batches_, 1, 1});
    for (int64_t rows = n; rows > 0 && node_.ok(); --rows) {
      det = Step(&a, rows, det);
    }
    return {node_.Reshape(det, batch)};
  }

 private:
  int Mul(int a, int b) { return node_.Emit("mul", {a, b}); }

  int Block(int a, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    return node_.Slice(node_.Slice(a, 1, row, rows), 2, column, columns);
  }

  // Takes a row and a column from a[batch, rows, rows]; returns the determinant
  // times the pivot.
  int Step(int* a, int64_t rows, int det) {
    if (rows == 1) return Mul(det, *a);
    const int column = node_.Slice(*a, 2, 0, 1);
    const int best =
        node_.Emit("arg_max", {node_.Emit("abs", {column})},
                   {{"axis", int64_t{1}}, {"keepdims", int64_t{1}}});
    Dims places(rows);
    for (int64_t i = 0; i < rows; ++i) places[i] = i;
    const int is_best =
        node_.Emit("equal", {node_.IntConstant(places, {1, rows, 1}), best});
    const int pivot_row = node_.Emit(
        "gather_elements", {*a, node_.Expand(best, {batches_, 1, rows})},
        {{"axis", int64_t{1}}});
    const int pivot = node_.Slice(pivot_row, 2, 0, 1);
    const int is_first =
        node_.Emit("equal", {best, node_.IntConstant({0}, {})});
    const int sign = node_.Emit(
        "where", {is_first, node_.Scalar(det, 1), node_.Scalar(det, -1)});
    // The first row takes the place of the pivot's.
    const int swapped =
        node_.Emit("where", {is_best, node_.Slice(*a, 1, 0, 1), *a});
    // A column of zeros has a pivot of 0, by which nothing may be divided.
    const int is_zero = node_.Emit("equal", {pivot, node_.Scalar(det, 0)});
    const int divisor =
        node_.Emit("where", {is_zero, node_.Scalar(det, 1), pivot});
    const int parts =
        node_.Emit("div", {node_.Slice(pivot_row, 2, 1, rows - 1), divisor});
    const int factors = Block(swapped, 1, rows - 1, 0, 1);
    const int rest = Block(swapped, 1, rows - 1, 1, rows - 1);
    *a = node_.Emit("sub", {rest, Mul(factors, parts)});
    return Mul(det, Mul(pivot, sign));
  }

  NodeImport& node_;
  int64_t batches_ = 1;
};

}  // namespace

void AddDetRule(ImportRules& rules) {
  rules["Det"] = [](NodeImport& node) { return Elimination(node).Run(); };
}

}  // namespace optrail::graph
