#ifndef OPTRAIL_GRAPH_RUNNER_CODEGEN_H_
#define OPTRAIL_GRAPH_RUNNER_CODEGEN_H_

// Generic kernels, as C++ text: loops over views with an expression inside.
//
//   Expression expression;
//   const int x = expression.Load(0, proto::ELEMENT_F32, {64, 1});
//   expression.Emit(neg, {x}, proto::ELEMENT_F32);
//   const std::string body = LoopSource(expression, {32, 64}, {64, 1}, 1);
//
// A body reads its operands from p[0], p[1], ... and writes the last of them.
// Strides and sizes are numbers in the text, so that the compiler vectorizes;
// kernels of equal text are compiled once.

#include <string>
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
  int Load(int operand, proto::ElementType type, Dims strides);
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

// y[...] = the expression's last value, for all places within `dims`.
std::string LoopSource(Expression expression, Dims dims, Dims y_strides,
                       int y_operand);

// y = op of the expression's last value over the loops where y's stride is
// marked as reduced; op is reduce_sum and so on.
std::string ReduceSource(const std::string& op, Expression expression,
                         Dims dims, const std::vector<bool>& reduced,
                         Dims y_strides, int y_operand);

// layer_norm and rms_norm of dense rows: x, scale, bias or none, y. With
// `of_sum` the operands are x, r, scale, bias or none, y, the sum or none.
struct RowNormLoops {
  int64_t rows = 1, cols = 1;
  double epsilon = 0;
  bool centred = false, has_bias = false;
  bool of_sum = false, keeps_sum = false;
};
std::string RowNormSource(const RowNormLoops& loops);

// Windows and convolutions in two spatial dimensions, by strides of x and y in
// the order n, c, h, w.
struct WindowLoops {
  Dims x_dims, x_strides, y_dims, y_strides;
  int64_t kernel[2], stride[2], begin[2], end[2], dilation[2];
  int64_t group = 1;
  bool has_bias = false;
};
// Weights are dense [r, s, c / group, k].
std::string ConvSource(const WindowLoops& loops);
std::string PoolSource(const WindowLoops& loops, bool maximum,
                       bool count_padding);

// A whole file for ops/core/jit.h whose entry point runs the kernel that the
// first operand points to (an int64_t), with the operands behind it.
std::string KernelFile(const std::vector<std::string>& bodies);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_CODEGEN_H_
