#ifndef OPTRAIL_GRAPH_RUNNER_CODEGEN_H_
#define OPTRAIL_GRAPH_RUNNER_CODEGEN_H_

// Generic kernels as text: loops over views with an expression inside, which a
// LoopPrinter prints as C++ or as CUDA.
//
//   Expression expression;
//   const int x = expression.Load(0, proto::ELEMENT_F32, {64, 1});
//   expression.Emit(neg, {x}, proto::ELEMENT_F32);
//   const GeneratedKernel kernel =
//       CppPrinter().Loop(expression, {32, 64}, {64, 1}, 1);
//
// A body reads its operands from p[0], p[1], ... and writes the last of them.
// Strides and sizes are numbers in the text, so that the compiler vectorizes;
// equal kernels are compiled once.

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "graph/ir/array.h"
#include "graph/ir/graph.h"

namespace optrail::graph {

// True if the generator has a C++ type for it.
bool HasCode(proto::ElementType type);

// Straight-line code of elementwise operators at one point of an iteration
// space. Values are numbered in the order of their making.
class Expression {
 public:
  // The element of operand `operand` with these strides along the loops.
  // `offset` is the view's in its storage, from which alignment follows.
  int Load(int operand, proto::ElementType type, Dims strides,
           int64_t offset = 0);
  // The element of row index along an axis: `stride` times the value of
  // `index`, which is made non-negative by `size`, beside the others.
  int Gather(int operand, proto::ElementType type, Dims strides, int index,
             int64_t stride, int64_t size);
  int Emit(const Node& node, const std::vector<int>& inputs,
           proto::ElementType type);
  // The one element of an array.
  int Literal(const Array& array);

  // Returns whether it reads elsewhere than at its point.
  bool gathers() const;

  struct Line {
    int operand = -1;  // loads
    Dims strides;
    int64_t offset = 0;
    int index = -1;  // gathers
    int64_t stride = 0, size = 0;
    std::string literal;
    std::string op;  // the rest
    std::vector<int> inputs;
    proto::ElementType type = proto::ELEMENT_TYPE_UNSPECIFIED;
  };
  const std::vector<Line>& lines() const { return lines_; }
  std::vector<Line>& lines() { return lines_; }

 private:
  std::vector<Line> lines_;
};

struct GeneratedKernel {
  std::string source;  // of the function's body; empty: the printer has none
  // On a GPU: how it is launched.
  int64_t blocks = 1;
  int threads = 1;
  int64_t shared_bytes = 0;  // of tiles; what reductions take is little

  bool operator<(const GeneratedKernel& other) const {
    return std::tie(source, blocks, threads) <
           std::tie(other.source, other.blocks, other.threads);
  }
};

// One of the inputs of a concatenation, and where it goes.
struct ConcatPart {
  Expression expression;
  Dims dims;
  int64_t y_offset = 0;
};

// layer_norm and rms_norm of dense rows: x, scale, bias or none, y. With
// `of_sum` the operands are x, r, scale, bias or none, y, the sum or none.
struct RowNormLoops {
  proto::ElementType type = proto::ELEMENT_F32;
  int64_t rows = 1, cols = 1;
  double epsilon = 0;
  bool centred = false, has_bias = false;
  bool of_sum = false, keeps_sum = false;
};
// Windows and convolutions in two spatial dimensions, by strides of x and y in
// the order n, c, h, w.
struct WindowLoops {
  proto::ElementType type = proto::ELEMENT_F32;
  Dims x_dims, x_strides, y_dims, y_strides;
  int64_t kernel[2], stride[2], begin[2], end[2], dilation[2];
  int64_t group = 1;
  bool has_bias = false;
};

// y = f(a b + bias), by strides, in dimensions of batches, rows and columns.
struct ProductLoops {
  proto::ElementType type = proto::ELEMENT_F32;
  Dims batch, a_batch, b_batch, y_batch;  // sizes and strides
  int64_t m = 1, n = 1, k = 1;
  int64_t a_m = 0, a_k = 0, b_k = 0, b_n = 0, y_m = 0, y_n = 0;
  bool has_bias = false;   // dense, behind a and b
  std::string activation;  // "", "relu", "gelu"
};

class LoopPrinter {
 public:
  virtual ~LoopPrinter() = default;

  // y[...] = the expression's last value, for all places within `dims`.
  virtual GeneratedKernel Loop(const Expression& expression, const Dims& dims,
                               const Dims& y_strides, int y_operand) const = 0;
  // Several such loops, each with its part of one y.
  virtual GeneratedKernel Concat(const std::vector<ConcatPart>& parts,
                                 const Dims& y_strides,
                                 int y_operand) const = 0;
  // y = op of the expression's last value over the loops that are marked as
  // reduced; op is reduce_sum and so on. The sum is of the value's type.
  virtual GeneratedKernel Reduce(const std::string& op,
                                 const Expression& expression, const Dims& dims,
                                 const std::vector<bool>& reduced,
                                 const Dims& y_strides, int y_operand,
                                 proto::ElementType y_type) const = 0;
  // The others may have no text for a type.
  virtual GeneratedKernel RowNorm(const RowNormLoops& loops) const = 0;
  // Weights are dense [r, s, c / group, k].
  virtual GeneratedKernel Conv(const WindowLoops& loops) const = 0;
  virtual GeneratedKernel Pool(const WindowLoops& loops, bool maximum,
                               bool count_padding) const = 0;
  virtual GeneratedKernel Product(const ProductLoops& loops) const = 0;
  // Kernels of as many threads each, side by side in one launch; `operands` are
  // the places of each one's operands among those of all. A printer whose
  // kernels are called one after another has no text.
  virtual GeneratedKernel Merge(
      const std::vector<GeneratedKernel>& kernels,
      const std::vector<std::vector<int>>& operands) const {
    return {};
  }

  // A whole file with these kernels. In C++ it is for ops/core/jit.h: the entry
  // point runs the kernel whose number the first operand points to (an
  // int64_t), with the operands behind it. In CUDA kernel k is KernelName(k),
  // whose parameters are the addresses of as many operands as it has.
  virtual std::string File(const std::vector<GeneratedKernel>& kernels,
                           const std::vector<int>& operands) const = 0;
};

const LoopPrinter& CppPrinter();
const LoopPrinter& CudaPrinter();

// "kernel3"
std::string KernelName(size_t number);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_CODEGEN_H_
