#include "tuning/space/expression.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "tuning/space/expression_node.h"

namespace optrail::tuning {

using internal_expression::MakeConstant;
using internal_expression::MakeKnob;
using internal_expression::MakeNode;
using internal_expression::Node;
using internal_expression::NodePtr;
using internal_expression::Op;

double DoubleFromBits(int64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

int64_t BitsFromDouble(double value) {
  int64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

absl::string_view EvalErrorName(EvalError error) {
  switch (error) {
    case EvalError::kNone:
      return "no error";
    case EvalError::kOverflow:
      return "integer overflow";
    case EvalError::kDivisionByZero:
      return "division by zero";
    case EvalError::kDomain:
      return "log2 of a number that is not positive";
  }
  return "?";
}

namespace {

// The machine's operations: those of the tree by type, and jumps.
enum Code : uint8_t {
  kMove,
  kNegateInt,
  kNegateDouble,
  kNot,
  kAddInt,
  kAddDouble,
  kSubtractInt,
  kSubtractDouble,
  kMultiplyInt,
  kMultiplyDouble,
  kDivideInt,
  kDivideDouble,
  kModuloInt,
  kLessInt,
  kLessDouble,
  kLessEqualInt,
  kLessEqualDouble,
  kEqualInt,
  kEqualDouble,
  kNotEqualInt,
  kNotEqualDouble,
  kMinInt,
  kMinDouble,
  kMaxInt,
  kMaxDouble,
  kCeilDivInt,
  kLog2Int,
  kLog2Double,
  kIntToDouble,
  kDoubleToInt,
  kJump,         // to a
  kJumpIfFalse,  // to a, if slot b is 0
  kJumpIfTrue,
  kReturn,
};

// How an operation is written, and computed by the type of its operands.
struct Operation {
  Op op;
  bool is_infix;  // else symbol(operands)
  const char* symbol;
  Code of_ints;
  Code of_doubles;
};

constexpr Operation kOperations[] = {
    {Op::kNegate, false, "-", kNegateInt, kNegateDouble},
    {Op::kNot, false, "!", kNot, kNot},
    {Op::kAdd, true, "+", kAddInt, kAddDouble},
    {Op::kSubtract, true, "-", kSubtractInt, kSubtractDouble},
    {Op::kMultiply, true, "*", kMultiplyInt, kMultiplyDouble},
    {Op::kDivide, true, "/", kDivideInt, kDivideDouble},
    {Op::kModulo, true, "%", kModuloInt, kModuloInt},
    {Op::kLess, true, "<", kLessInt, kLessDouble},
    {Op::kLessEqual, true, "<=", kLessEqualInt, kLessEqualDouble},
    {Op::kEqual, true, "==", kEqualInt, kEqualDouble},
    {Op::kNotEqual, true, "!=", kNotEqualInt, kNotEqualDouble},
    {Op::kMin, false, "min", kMinInt, kMinDouble},
    {Op::kMax, false, "max", kMaxInt, kMaxDouble},
    {Op::kCeilDiv, false, "ceil_div", kCeilDivInt, kCeilDivInt},
    {Op::kLog2, false, "log2", kLog2Int, kLog2Double},
    {Op::kToDouble, false, "double", kIntToDouble, kMove},
    {Op::kToInt, false, "int", kMove, kDoubleToInt},
    // Jumps compute these.
    {Op::kAnd, true, "&&", kReturn, kReturn},
    {Op::kOr, true, "||", kReturn, kReturn},
};

const Operation& OperationOf(Op op) {
  for (const Operation& operation : kOperations) {
    if (operation.op == op) return operation;
  }
  OPTRAIL_CHECK(false) << "no operation " << static_cast<int>(op);
  return kOperations[0];
}

Code CodeFor(Op op, ExprType type) {
  const Operation& operation = OperationOf(op);
  return type == ExprType::kDouble ? operation.of_doubles : operation.of_ints;
}

std::string ConstantText(const Node& node) {
  switch (node.type) {
    case ExprType::kInt:
      return absl::StrCat(node.value);
    case ExprType::kBool:
      return node.value != 0 ? "true" : "false";
    case ExprType::kDouble: {
      std::string text = absl::StrFormat("%.17g", DoubleFromBits(node.value));
      // Without a point or an exponent it would read back as an integer.
      if (text.find_first_of(".en") == std::string::npos) text += ".0";
      return text;
    }
    case ExprType::kString: {
      std::string text = "'";
      for (char c : node.text) {
        if (c == '\\' || c == '\'') text += '\\';
        text += c;
      }
      return text + "'";
    }
  }
  return "?";
}

// Every operation in parentheses, so that no precedence is needed.
void AppendText(const Node& node, std::string* out) {
  const auto append_list = [&](size_t begin) {
    for (size_t i = begin; i < node.args.size(); ++i) {
      if (i > begin) out->append(", ");
      AppendText(*node.args[i], out);
    }
  };
  switch (node.op) {
    case Op::kConstant:
      out->append(ConstantText(node));
      return;
    case Op::kKnob:
    case Op::kParameter:
      out->append(node.text);
      return;
    case Op::kConditional:
      out->append("(");
      AppendText(*node.args[0], out);
      out->append(" ? ");
      AppendText(*node.args[1], out);
      out->append(" : ");
      AppendText(*node.args[2], out);
      out->append(")");
      return;
    case Op::kIn:
      out->append("(");
      AppendText(*node.args[0], out);
      out->append(" in [");
      append_list(1);
      out->append("])");
      return;
    default:
      break;
  }
  const Operation& operation = OperationOf(node.op);
  if (operation.is_infix) {
    out->append("(");
    AppendText(*node.args[0], out);
    absl::StrAppend(out, " ", operation.symbol, " ");
    AppendText(*node.args[1], out);
  } else {
    absl::StrAppend(out, operation.symbol, "(");
    append_list(0);
  }
  out->append(")");
}

bool IsConstant(const NodePtr& node) { return node->op == Op::kConstant; }

void CollectParameters(const Node& node,
                       std::vector<Expression::Parameter>* out) {
  if (node.op == Op::kParameter) out->push_back({node.text, node.offset});
  for (const NodePtr& arg : node.args) CollectParameters(*arg, out);
}

void CollectCuts(const NodePtr& node, uint64_t bound,
                 absl::flat_hash_set<std::string>* seen,
                 std::vector<NodePtr>* out) {
  if (node->knobs == 0) return;
  if ((node->knobs & ~bound) == 0) {
    std::string text;
    AppendText(*node, &text);
    if (seen->insert(std::move(text)).second) out->push_back(node);
    return;
  }
  for (const NodePtr& arg : node->args) CollectCuts(arg, bound, seen, out);
}

// Drops the parts of && || ?: that a constant decides; nullptr if none does.
NodePtr FoldLogic(Op op, const std::vector<NodePtr>& args) {
  if (op == Op::kConditional && IsConstant(args[0])) {
    return args[0]->value != 0 ? args[1] : args[2];
  }
  if (op != Op::kAnd && op != Op::kOr) return nullptr;
  const bool neutral = op == Op::kAnd;
  if (IsConstant(args[0])) {
    return (args[0]->value != 0) == neutral ? args[1] : args[0];
  }
  // The left side may still have no value, so a deciding right side stays.
  if (IsConstant(args[1]) && (args[1]->value != 0) == neutral) return args[0];
  return nullptr;
}

NodePtr Product(const Scope& scope, const std::vector<int>& knobs) {
  NodePtr product;
  for (int knob : knobs) {
    NodePtr factor = MakeKnob(knob, ExprType::kInt, scope.knob_name(knob), 0);
    product = product == nullptr ? factor
                                 : MakeNode(Op::kMultiply, ExprType::kInt,
                                            {product, factor}, 0);
  }
  return product;
}

}  // namespace

ExprType Expression::type() const { return node_->type; }

uint64_t Expression::knobs() const { return node_->knobs; }

std::vector<Expression::Parameter> Expression::Parameters() const {
  std::vector<Parameter> parameters;
  CollectParameters(*node_, &parameters);
  return parameters;
}

std::string Expression::CanonicalText() const {
  std::string text;
  AppendText(*node_, &text);
  return text;
}

Expression Expression::Bind(
    absl::FunctionRef<absl::optional<Value>(absl::string_view)> parameter)
    const {
  if (node_->op == Op::kParameter) {
    absl::optional<Value> value = parameter(node_->text);
    if (!value.has_value()) return *this;
    auto constant = std::make_shared<Node>();
    constant->type = node_->type;
    constant->value = value->number;
    constant->text = std::move(value->text);
    constant->offset = node_->offset;
    return Expression(std::move(constant));
  }
  if (node_->args.empty()) return *this;
  std::vector<NodePtr> args;
  args.reserve(node_->args.size());
  for (const NodePtr& arg : node_->args) {
    args.push_back(Expression(arg).Bind(parameter).node_);
  }
  if (NodePtr folded = FoldLogic(node_->op, args)) return Expression(folded);
  const bool constant = std::all_of(args.begin(), args.end(), IsConstant);
  Expression bound(
      MakeNode(node_->op, node_->type, std::move(args), node_->offset));
  // Strings only occur as operands of comparisons, so a folded one is no
  // string, except through ?:, which FoldLogic handles.
  if (!constant || node_->type == ExprType::kString) return bound;
  Frame frame(0);
  const SlotProgram program = frame.Compile(bound);
  std::vector<int64_t> slots = frame.slots();
  // What has no value keeps its place and has none when it is evaluated.
  if (program.Run(slots.data()) != EvalError::kNone) return bound;
  return Expression(
      MakeConstant(node_->type, slots[program.result()], node_->offset));
}

std::vector<Expression> Expression::Conjuncts() const {
  if (node_->op != Op::kAnd) return {*this};
  std::vector<Expression> result = Expression(node_->args[0]).Conjuncts();
  for (Expression& right : Expression(node_->args[1]).Conjuncts()) {
    result.push_back(std::move(right));
  }
  return result;
}

std::vector<Expression> Expression::Cuts(uint64_t bound) const {
  absl::flat_hash_set<std::string> seen;
  std::vector<NodePtr> nodes;
  CollectCuts(node_, bound, &seen, &nodes);
  std::vector<Expression> cuts;
  for (NodePtr& node : nodes) cuts.push_back(Expression(std::move(node)));
  return cuts;
}

Expression Expression::ProductEquals(const Scope& scope,
                                     const std::vector<int>& knobs,
                                     int64_t value) {
  return Expression(MakeNode(
      Op::kEqual, ExprType::kBool,
      {Product(scope, knobs), MakeConstant(ExprType::kInt, value)}, 0));
}

Expression Expression::ProductDivides(const Scope& scope,
                                      const std::vector<int>& knobs,
                                      int64_t value) {
  NodePtr rest =
      MakeNode(Op::kModulo, ExprType::kInt,
               {MakeConstant(ExprType::kInt, value), Product(scope, knobs)}, 0);
  return Expression(MakeNode(Op::kEqual, ExprType::kBool,
                             {std::move(rest), MakeConstant(ExprType::kInt, 0)},
                             0));
}

uint32_t Frame::Constant(int64_t value) {
  const auto [it, inserted] = constants_.try_emplace(value, 0);
  if (inserted) {
    it->second = Temporary();
    slots_[it->second] = value;
  }
  return it->second;
}

uint32_t Frame::Temporary() {
  slots_.push_back(0);
  return static_cast<uint32_t>(slots_.size() - 1);
}

// Writes the code of one program.
class Frame::Compiler {
 public:
  explicit Compiler(Frame* frame) : frame_(*frame) {}

  // Returns the slot of the value of the whole, which is part of nothing.
  uint32_t EmitRoot(const Node& node) {
    if (IsLeaf(node)) return Emit(node);
    const uint32_t to = frame_.Temporary();
    EmitInto(node, to);
    return to;
  }

  std::vector<SlotProgram::Instruction> TakeCode() {
    code_.push_back({kReturn, 0, 0, 0});
    return std::move(code_);
  }

 private:
  static bool IsLeaf(const Node& node) {
    return node.op == Op::kConstant || node.op == Op::kKnob;
  }

  // Returns the slot of a node's value.
  uint32_t Emit(const Node& node) {
    if (node.op == Op::kConstant) return frame_.Constant(node.value);
    if (node.op == Op::kKnob) return static_cast<uint32_t>(node.value);
    const uint32_t number = NumberOf(node);
    if (const auto it = computed_.find(number); it != computed_.end()) {
      return it->second;
    }
    const uint32_t to = frame_.Temporary();
    EmitInto(node, to);
    computed_.emplace(number, to);
    in_order_.push_back(number);
    return to;
  }

  // The same for nodes that have the same value.
  uint32_t NumberOf(const Node& node) {
    if (const auto it = numbers_.find(&node); it != numbers_.end()) {
      return it->second;
    }
    std::vector<int64_t> key = {static_cast<int64_t>(node.op),
                                static_cast<int64_t>(node.type), node.value};
    for (const NodePtr& arg : node.args) key.push_back(NumberOf(*arg));
    const auto number = static_cast<uint32_t>(numbered_.size());
    return numbers_[&node] =
               numbered_.try_emplace(std::move(key), number).first->second;
  }

  uint32_t Here() const { return static_cast<uint32_t>(code_.size()); }
  size_t Jump(Code code, uint32_t slot) {
    code_.push_back({code, 0, 0, slot});
    return code_.size() - 1;
  }
  void JumpsHere(size_t jump) { code_[jump].a = Here(); }

  // Not every run computes the values after the first `known` ones.
  void Forget(size_t known) {
    for (; in_order_.size() > known; in_order_.pop_back()) {
      computed_.erase(in_order_.back());
    }
  }

  void EmitSometimes(const Node& node, uint32_t to) {
    const size_t known = in_order_.size();
    EmitValue(node, to);
    Forget(known);
  }

  void EmitValue(const Node& node, uint32_t to) {
    if (IsLeaf(node) || computed_.contains(NumberOf(node))) {
      code_.push_back({kMove, to, Emit(node), 0});
    } else {
      EmitInto(node, to);
    }
  }

  void EmitInto(const Node& node, uint32_t to) {
    switch (node.op) {
      case Op::kAnd:
      case Op::kOr: {
        EmitValue(*node.args[0], to);
        const size_t jump =
            Jump(node.op == Op::kAnd ? kJumpIfFalse : kJumpIfTrue, to);
        EmitSometimes(*node.args[1], to);
        JumpsHere(jump);
        return;
      }
      case Op::kConditional: {
        const size_t skip_yes = Jump(kJumpIfFalse, Emit(*node.args[0]));
        EmitSometimes(*node.args[1], to);
        const size_t skip_no = Jump(kJump, 0);
        JumpsHere(skip_yes);
        EmitSometimes(*node.args[2], to);
        JumpsHere(skip_no);
        return;
      }
      case Op::kIn: {
        const uint32_t left = Emit(*node.args[0]);
        const Code equal = CodeFor(Op::kEqual, node.args[0]->type);
        std::vector<size_t> jumps;
        code_.push_back({kMove, to, frame_.Constant(0), 0});
        const size_t known = in_order_.size();
        for (size_t i = 1; i < node.args.size(); ++i) {
          const uint32_t right = Emit(*node.args[i]);
          code_.push_back({equal, to, left, right});
          jumps.push_back(Jump(kJumpIfTrue, to));
        }
        for (size_t jump : jumps) JumpsHere(jump);
        Forget(known);
        return;
      }
      default: {
        const uint32_t a = Emit(*node.args[0]);
        const uint32_t b = node.args.size() > 1 ? Emit(*node.args[1]) : a;
        code_.push_back({CodeFor(node.op, node.args[0]->type), to, a, b});
      }
    }
  }

  Frame& frame_;
  std::vector<SlotProgram::Instruction> code_;
  absl::flat_hash_map<std::vector<int64_t>, uint32_t> numbered_;
  absl::flat_hash_map<const Node*, uint32_t> numbers_;
  // Slots of values by their numbers, and these in the order of their code.
  absl::flat_hash_map<uint32_t, uint32_t> computed_;
  std::vector<uint32_t> in_order_;
};

SlotProgram Frame::Compile(const Expression& expression) {
  Compiler compiler(this);
  SlotProgram program;
  program.result_ = static_cast<int>(compiler.EmitRoot(*expression.node_));
  program.code_ = compiler.TakeCode();
  return program;
}

// One case of the machine each.
#define SET_INT(code, value) \
  case code:                 \
    s[i.to] = value;         \
    break
#define SET_DOUBLE(code, value) \
  case code:                    \
    put(i.to, value);           \
    break
#define CHECKED(code, overflows)               \
  case code:                                   \
    if (overflows(s[i.a], s[i.b], &s[i.to])) { \
      return EvalError::kOverflow;             \
    }                                          \
    break

EvalError SlotProgram::Run(int64_t* s) const {
  const Instruction* const code = code_.data();
  const Instruction* pc = code;
  const auto d = [s](uint32_t slot) { return DoubleFromBits(s[slot]); };
  const auto put = [s](uint32_t slot, double v) {
    s[slot] = BitsFromDouble(v);
  };
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  for (;; ++pc) {
    const Instruction i = *pc;
    switch (static_cast<Code>(i.op)) {
      SET_INT(kMove, s[i.a]);
      SET_DOUBLE(kNegateDouble, -d(i.a));
      SET_INT(kNot, s[i.a] == 0);
      CHECKED(kAddInt, __builtin_add_overflow);
      SET_DOUBLE(kAddDouble, d(i.a) + d(i.b));
      CHECKED(kSubtractInt, __builtin_sub_overflow);
      SET_DOUBLE(kSubtractDouble, d(i.a) - d(i.b));
      CHECKED(kMultiplyInt, __builtin_mul_overflow);
      SET_DOUBLE(kMultiplyDouble, d(i.a) * d(i.b));
      SET_DOUBLE(kDivideDouble, d(i.a) / d(i.b));
      SET_INT(kLessInt, s[i.a] < s[i.b]);
      SET_INT(kLessDouble, d(i.a) < d(i.b));
      SET_INT(kLessEqualInt, s[i.a] <= s[i.b]);
      SET_INT(kLessEqualDouble, d(i.a) <= d(i.b));
      SET_INT(kEqualInt, s[i.a] == s[i.b]);
      SET_INT(kEqualDouble, d(i.a) == d(i.b));
      SET_INT(kNotEqualInt, s[i.a] != s[i.b]);
      SET_INT(kNotEqualDouble, d(i.a) != d(i.b));
      SET_INT(kMinInt, std::min(s[i.a], s[i.b]));
      SET_DOUBLE(kMinDouble, std::min(d(i.a), d(i.b)));
      SET_INT(kMaxInt, std::max(s[i.a], s[i.b]));
      SET_DOUBLE(kMaxDouble, std::max(d(i.a), d(i.b)));
      SET_DOUBLE(kIntToDouble, static_cast<double>(s[i.a]));
      case kNegateInt:
        if (s[i.a] == kMin) return EvalError::kOverflow;
        s[i.to] = -s[i.a];
        break;
      case kDivideInt:
        if (s[i.b] == 0) return EvalError::kDivisionByZero;
        if (s[i.b] == -1 && s[i.a] == kMin) return EvalError::kOverflow;
        s[i.to] = s[i.a] / s[i.b];
        break;
      case kModuloInt:
        if (s[i.b] == 0) return EvalError::kDivisionByZero;
        // CEL leaves the value of MIN % -1 open; it is 0 mathematically.
        s[i.to] = s[i.b] == -1 ? 0 : s[i.a] % s[i.b];
        break;
      case kCeilDivInt: {
        const int64_t a = s[i.a];
        const int64_t b = s[i.b];
        if (b == 0) return EvalError::kDivisionByZero;
        if (b == -1 && a == kMin) return EvalError::kOverflow;
        s[i.to] = a / b + (a % b != 0 && (a < 0) == (b < 0));
        break;
      }
      case kLog2Int:
        if (s[i.a] <= 0) return EvalError::kDomain;
        s[i.to] = 63 - __builtin_clzll(static_cast<uint64_t>(s[i.a]));
        break;
      case kLog2Double:
        if (!(d(i.a) > 0)) return EvalError::kDomain;
        put(i.to, std::log2(d(i.a)));
        break;
      case kDoubleToInt:
        // The comparison is false for NaN.
        if (!(d(i.a) > -0x1p63 && d(i.a) < 0x1p63)) {
          return EvalError::kOverflow;
        }
        s[i.to] = static_cast<int64_t>(d(i.a));
        break;
      case kJump:
        pc = code + i.a - 1;
        break;
      case kJumpIfFalse:
        if (s[i.b] == 0) pc = code + i.a - 1;
        break;
      case kJumpIfTrue:
        if (s[i.b] != 0) pc = code + i.a - 1;
        break;
      case kReturn:
        return EvalError::kNone;
    }
  }
}

#undef SET_INT
#undef SET_DOUBLE
#undef CHECKED

}  // namespace optrail::tuning
