#ifndef OPTRAIL_TUNING_SPACE_EXPRESSION_NODE_H_
#define OPTRAIL_TUNING_SPACE_EXPRESSION_NODE_H_

// The tree behind an Expression. Only for expression*.cc.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tuning/space/expression.h"

namespace optrail::tuning::internal_expression {

enum class Op : uint8_t {
  kConstant,
  kKnob,
  kParameter,
  kNegate,
  kNot,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kAnd,
  kOr,
  kConditional,
  kIn,  // args[0] in [args[1], ...]
  kMin,
  kMax,
  kCeilDiv,
  kLog2,
  kToDouble,
  kToInt,
};

struct Node {
  Op op = Op::kConstant;
  ExprType type = ExprType::kInt;
  int64_t value = 0;   // of a constant; the index of a knob
  std::string text;    // of a string constant, a knob, a parameter
  uint64_t knobs = 0;  // that the subtree reads
  size_t offset = 0;   // in the source
  std::vector<std::shared_ptr<const Node>> args;
};

using NodePtr = std::shared_ptr<const Node>;

inline NodePtr MakeNode(Op op, ExprType type, std::vector<NodePtr> args,
                        size_t offset) {
  auto node = std::make_shared<Node>();
  node->op = op;
  node->type = type;
  node->offset = offset;
  for (const NodePtr& arg : args) node->knobs |= arg->knobs;
  node->args = std::move(args);
  return node;
}

inline NodePtr MakeConstant(ExprType type, int64_t value, size_t offset = 0) {
  auto node = std::make_shared<Node>();
  node->type = type;
  node->value = value;
  node->offset = offset;
  return node;
}

inline NodePtr MakeKnob(int index, ExprType type, std::string name,
                        size_t offset) {
  auto node = std::make_shared<Node>();
  node->op = Op::kKnob;
  node->type = type;
  node->value = index;
  node->text = std::move(name);
  node->knobs = uint64_t{1} << index;
  node->offset = offset;
  return node;
}

}  // namespace optrail::tuning::internal_expression

#endif  // OPTRAIL_TUNING_SPACE_EXPRESSION_NODE_H_
