#ifndef OPTRAIL_TUNING_SPACE_EXPRESSION_H_
#define OPTRAIL_TUNING_SPACE_EXPRESSION_H_

// The expressions of space files: a subset of CEL (Common Expression Language),
// parsed and type-checked when the file is read, compiled for one shape and
// hardware, and then evaluated at tens of millions a second.
//
//   Scope scope;
//   scope.AddKnob("unroll", ExprType::kInt);
//   size_t offset = 0;
//   ASSIGN_OR_RETURN(Expression expr, Expression::Parse(
//       "unroll * dim.cols <= hw.l2_bytes", &scope, &offset));
//   Frame frame(scope.knob_count());
//   const SlotProgram program = frame.Compile(expr.Bind(values));
//   std::vector<int64_t> slots = frame.slots();
//   slots[0] = 4;                                    // unroll
//   if (program.Run(slots.data()) == EvalError::kNone) {
//     Use(slots[program.result()]);
//   }
//
// Grammar and meaning: docs/reference/space_format.md. It has no macros, maps,
// messages or user functions.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace optrail::tuning {

enum class ExprType : uint8_t { kInt, kDouble, kBool, kString };
absl::string_view ExprTypeName(ExprType type);  // "int", ...

// Why an expression has no value. A constraint without a value refuses the
// config.
enum class EvalError : uint8_t {
  kNone,
  kOverflow,        // an integer result outside 64 bits
  kDivisionByZero,  // integer / or % or ceil_div
  kDomain,          // log2 of a number that is not positive
};
absl::string_view EvalErrorName(EvalError error);  // "integer overflow", ...

namespace internal_expression {
struct Node;
}  // namespace internal_expression

class Expression;

// The knobs and the attributes of shapes (`attr.*`) that an expression may
// read. Names of `dim.*` and `hw.*`, all integers, are known when the
// expression is bound: they are the shape's and the hardware's. Those of
// `fact.*` are what compiling a config tells.
class Scope {
 public:
  static constexpr int kMaxKnobs = 64;

  // Knobs are numbered from 0. kString for a knob with variants.
  void AddKnob(absl::string_view name, ExprType type,
               std::vector<std::string> variants = {});

  // kInt or kString.
  void AddAttribute(absl::string_view name, ExprType type);

  // Where expressions that are parsed later read `name`, `expression` stands.
  void AddLet(absl::string_view name, const Expression& expression);
  bool HasLet(absl::string_view name) const { return lets_.count(name) > 0; }

  int knob_count() const { return static_cast<int>(knobs_.size()); }
  const std::string& knob_name(int knob) const { return knobs_[knob].name; }

  // Strings are compared by number.
  int64_t Intern(absl::string_view text);

 private:
  friend class ExpressionParser;
  struct Knob {
    std::string name;
    ExprType type;
    std::vector<std::string> variants;
  };
  const Knob* Find(absl::string_view name, int* index) const;
  std::string KnobNames() const;
  std::string AttributeNames() const;

  std::vector<Knob> knobs_;
  std::map<std::string, ExprType, std::less<>> attributes_;
  std::map<std::string, std::shared_ptr<const internal_expression::Node>,
           std::less<>>
      lets_;
  absl::flat_hash_map<std::string, int64_t> strings_;
};

// [A-Za-z_][A-Za-z0-9_]* that is no keyword, function or namespace.
bool IsKnobName(absl::string_view name);

// Immutable and cheap to copy.
class Expression {
 public:
  // A name such as "dim.cols" that gets its value when the expression is bound.
  struct Parameter {
    std::string name;
    size_t offset = 0;  // in the text
  };

  // InvalidArgument; *error_offset is where in `text` the fault is.
  static absl::StatusOr<Expression> Parse(absl::string_view text, Scope* scope,
                                          size_t* error_offset);

  ExprType type() const;
  // Bit i: reads knob i of the scope.
  uint64_t knobs() const;
  std::vector<Parameter> Parameters() const;
  // The same for expressions that differ in layout only; reads back.
  std::string CanonicalText() const;

  // The value of a parameter: an integer, or a string by its text and its
  // number in the scope.
  struct Value {
    Value(int64_t number) : number(number) {}  // NOLINT
    Value(int64_t number, std::string text)
        : number(number), text(std::move(text)) {}
    int64_t number;
    std::string text;
  };

  // With every parameter replaced by its value, and constants folded. One
  // without a value (nullopt) stays, for another Bind().
  Expression Bind(absl::FunctionRef<absl::optional<Value>(absl::string_view)>
                      parameter) const;

  // The operands of a && b && c; the expression itself if it is no such.
  std::vector<Expression> Conjuncts() const;

  // The largest parts that read only knobs in `bound`, and at least one. Once
  // those knobs have values, the expression depends on them only through
  // these parts. Without repetition.
  std::vector<Expression> Cuts(uint64_t bound) const;

  // The equation of a split, over integer knobs of the scope:
  // knobs[0] * knobs[1] * ... == value
  static Expression ProductEquals(const Scope& scope,
                                  const std::vector<int>& knobs, int64_t value);
  // value % (knobs[0] * knobs[1] * ...) == 0
  static Expression ProductDivides(const Scope& scope,
                                   const std::vector<int>& knobs,
                                   int64_t value);

 private:
  friend class Frame;
  friend class ExpressionParser;
  friend class Scope;
  using Node = internal_expression::Node;
  explicit Expression(std::shared_ptr<const Node> node)
      : node_(std::move(node)) {}

  std::shared_ptr<const Node> node_;
};

// Straight-line code over slots of 64 bits.
class SlotProgram {
 public:
  // Afterwards the value is in slots[result()]: an integer, a boolean (0, 1),
  // the number of a string, or the bits of a double.
  EvalError Run(int64_t* slots) const;
  int result() const { return result_; }

  // Of a boolean program: whether it has a value, and that is true.
  bool Holds(int64_t* slots) const {
    return Run(slots) == EvalError::kNone && slots[result_] != 0;
  }

 private:
  friend class Frame;
  struct Instruction {
    uint8_t op;
    uint32_t to;
    uint32_t a;  // or the jump's target
    uint32_t b;
  };
  std::vector<Instruction> code_;
  int result_ = 0;
};

// The slots that programs share: first the knobs, then constants and
// temporaries.
class Frame {
 public:
  explicit Frame(int knobs) : slots_(knobs) {}

  // Compiles a bound expression. What stands in it several times, as lets do,
  // is computed once, where that is before all places that need it.
  SlotProgram Compile(const Expression& expression);

  // With every constant in its place. Copy it to evaluate.
  const std::vector<int64_t>& slots() const { return slots_; }

 private:
  class Compiler;

  uint32_t Constant(int64_t value);
  uint32_t Temporary();

  std::vector<int64_t> slots_;
  absl::flat_hash_map<int64_t, uint32_t> constants_;
};

double DoubleFromBits(int64_t bits);
int64_t BitsFromDouble(double value);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SPACE_EXPRESSION_H_
