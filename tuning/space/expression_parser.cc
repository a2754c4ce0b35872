// Parser and type checker of expressions. Precedence, from the loosest:
//
//   ?:    ||    &&    == != < <= > >= in (not chained)    + -    * / %    ! -
//
// as in CEL. Types are checked while parsing, bottom up.

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuning/space/expression.h"
#include "tuning/space/expression_lexer.h"
#include "tuning/space/expression_node.h"

namespace optrail::tuning {

using internal_expression::Describe;
using internal_expression::ExpressionLexer;
using internal_expression::MakeConstant;
using internal_expression::MakeKnob;
using internal_expression::MakeNode;
using internal_expression::Node;
using internal_expression::NodePtr;
using internal_expression::Op;
using internal_expression::Token;

namespace {

constexpr size_t kMaxBytes = 4096;
constexpr int kMaxDepth = 64;
constexpr int kMaxNodes = 4096;  // that lets stand for

const char* const kFunctions[] = {"ceil_div", "double", "int",
                                  "log2",     "max",    "min"};
const char* const kReserved[] = {"dim", "false", "hw", "in", "null", "true"};

template <size_t n>
bool Contains(const char* const (&names)[n], absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool IsNumeric(const NodePtr& node) {
  return node->type == ExprType::kInt || node->type == ExprType::kDouble;
}

}  // namespace

bool IsKnobName(absl::string_view name) {
  if (name.empty() || absl::ascii_isdigit(name[0])) return false;
  for (char c : name) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return !Contains(kFunctions, name) && !Contains(kReserved, name);
}

absl::string_view ExprTypeName(ExprType type) {
  switch (type) {
    case ExprType::kInt:
      return "int";
    case ExprType::kDouble:
      return "double";
    case ExprType::kBool:
      return "bool";
    case ExprType::kString:
      return "string";
  }
  return "?";
}
class ExpressionParser {
 public:
  ExpressionParser(absl::string_view text, Scope* scope)
      : text_(text), lexer_(text), scope_(scope) {}

  absl::StatusOr<Expression> Parse(size_t* error_offset) {
    NodePtr node;
    if (text_.size() > kMaxBytes) {
      Fail(0, absl::StrCat("the expression has ", text_.size(),
                           " bytes, expected at most ", kMaxBytes));
    } else if (Advance()) {
      node = Conditional();
      if (node != nullptr && token().kind != Token::kEnd) {
        Unexpected("an operator or the end");
        node = nullptr;
      }
    }
    if (node == nullptr) {
      if (error_offset != nullptr) *error_offset = lexer_.error_offset();
      return absl::InvalidArgumentError(lexer_.error());
    }
    return Expression(std::move(node));
  }

 private:
  // Keeps the first error. Returns nullptr so that callers can return it.
  NodePtr Fail(size_t offset, std::string message) {
    lexer_.Fail(offset, std::move(message));
    return nullptr;
  }

  NodePtr Unexpected(absl::string_view expected) {
    if (token().kind == Token::kSymbol && token().text == "=") {
      return Fail(token().offset,
                  "\"=\" assigns nothing here; equality is written ==");
    }
    return Fail(token().offset, absl::StrCat("expected ", expected, ", found ",
                                             Describe(token())));
  }

  bool Is(absl::string_view symbol) const {
    return token().kind == Token::kSymbol && token().text == symbol;
  }
  bool IsName(absl::string_view name) const {
    return token().kind == Token::kName && token().text == name;
  }

  // Consumes the symbol or fails.
  bool Expect(absl::string_view symbol) {
    if (!Is(symbol)) {
      Unexpected(absl::StrCat("\"", symbol, "\""));
      return false;
    }
    return Advance();
  }
  bool Advance() { return lexer_.Advance(); }
  const Token& token() const { return lexer_.token(); }

  // Counts nesting for as long as it lives.
  class Nesting {
   public:
    explicit Nesting(int* depth) : depth_(depth) { ++*depth_; }
    ~Nesting() { --*depth_; }

   private:
    int* const depth_;
  };

  NodePtr Conditional() {
    const Nesting nesting(&depth_);
    if (depth_ > kMaxDepth) {
      return Fail(token().offset,
                  absl::StrCat("nested more than ", kMaxDepth, " levels deep"));
    }
    NodePtr condition = Or();
    if (condition == nullptr || !Is("?")) return condition;
    const size_t offset = token().offset;
    if (!Advance()) return nullptr;
    if (condition->type != ExprType::kBool) {
      return Mismatch(condition, "the condition of ?:", "a bool");
    }
    NodePtr yes = Or();
    if (yes == nullptr || !Expect(":")) return nullptr;
    NodePtr no = Conditional();
    if (no == nullptr) return nullptr;
    if (yes->type != no->type) {
      return Fail(
          no->offset,
          absl::StrCat("?: chooses between ", ExprTypeName(yes->type), " and ",
                       ExprTypeName(no->type), ", expected the same type"));
    }
    const ExprType type = yes->type;
    return MakeNode(Op::kConditional, type, {condition, yes, no}, offset);
  }

  NodePtr Or() {
    return Logical("||", Op::kOr, [this] {
      return Logical("&&", Op::kAnd, [this] { return Relation(); });
    });
  }

  template <typename Operand>
  NodePtr Logical(absl::string_view symbol, Op op, Operand operand) {
    NodePtr left = operand();
    while (left != nullptr && Is(symbol)) {
      const size_t offset = token().offset;
      if (!Advance()) return nullptr;
      NodePtr right = operand();
      if (right == nullptr) return nullptr;
      for (const NodePtr& side : {left, right}) {
        if (side->type != ExprType::kBool) {
          return Mismatch(side, absl::StrCat("an operand of ", symbol),
                          "a bool");
        }
      }
      left = MakeNode(op, ExprType::kBool, {left, right}, offset);
    }
    return left;
  }

  bool AtRelation() const {
    static const char* const kSymbols[] = {"==", "!=", "<", "<=", ">", ">="};
    return IsName("in") ||
           (token().kind == Token::kSymbol && Contains(kSymbols, token().text));
  }

  NodePtr Relation() {
    NodePtr left = Additive();
    // Before types are checked: "=" explains more than the mismatch it causes.
    if (left != nullptr && Is("=")) return Unexpected("an operator");
    if (left == nullptr || !AtRelation()) return left;
    const Token symbol = token();
    if (!Advance()) return nullptr;
    NodePtr result;
    if (symbol.text == "in") {
      result = InList(left, symbol.offset);
    } else {
      NodePtr right = Additive();
      if (right == nullptr) return nullptr;
      result = Compare(symbol, left, right);
    }
    if (result == nullptr) return nullptr;
    if (AtRelation()) {
      return Fail(token().offset,
                  "comparisons can't be chained: write a < b && b < c");
    }
    return result;
  }

  NodePtr Compare(const Token& symbol, const NodePtr& left,
                  const NodePtr& right) {
    if (left->type != right->type) {
      return Fail(
          symbol.offset,
          absl::StrCat("\"", symbol.text, "\" compares ",
                       ExprTypeName(left->type), " with ",
                       ExprTypeName(right->type), MixedHint(left, right)));
    }
    const bool equality = symbol.text == "==" || symbol.text == "!=";
    if (!equality && !IsNumeric(left)) {
      return Fail(symbol.offset,
                  absl::StrCat("\"", symbol.text, "\" orders numbers, not ",
                               ExprTypeName(left->type), "s"));
    }
    if (!CheckVariant(left, right) || !CheckVariant(right, left)) {
      return nullptr;
    }
    const bool swap = symbol.text[0] == '>';
    const Op op = symbol.text == "=="       ? Op::kEqual
                  : symbol.text == "!="     ? Op::kNotEqual
                  : symbol.text.size() == 2 ? Op::kLessEqual
                                            : Op::kLess;
    return MakeNode(op, ExprType::kBool,
                    swap ? std::vector<NodePtr>{right, left}
                         : std::vector<NodePtr>{left, right},
                    symbol.offset);
  }

  NodePtr InList(const NodePtr& left, size_t offset) {
    std::vector<NodePtr> args = {left};
    if (!Expect("[")) return nullptr;
    while (!Is("]")) {
      if (args.size() > 1 && !Expect(",")) return nullptr;
      NodePtr element = Conditional();
      if (element == nullptr) return nullptr;
      if (element->type != left->type) {
        return Fail(element->offset,
                    absl::StrCat("the list holds ", ExprTypeName(element->type),
                                 ", expected ", ExprTypeName(left->type),
                                 " as on the left of \"in\"",
                                 MixedHint(left, element)));
      }
      if (!CheckVariant(left, element)) return nullptr;
      args.push_back(std::move(element));
    }
    if (!Advance()) return nullptr;
    return MakeNode(Op::kIn, ExprType::kBool, std::move(args), offset);
  }

  // A literal that a knob is compared with must be one of its variants.
  bool CheckVariant(const NodePtr& knob, const NodePtr& literal) {
    if (knob->type != ExprType::kString || knob->op != Op::kKnob ||
        literal->op != Op::kConstant) {
      return true;
    }
    const std::vector<std::string>& variants =
        scope_->knobs_[knob->value].variants;
    if (std::find(variants.begin(), variants.end(), literal->text) !=
        variants.end()) {
      return true;
    }
    Fail(literal->offset,
         absl::StrCat("knob \"", knob->text, "\" has no variant '",
                      literal->text, "', expected one of ",
                      absl::StrJoin(variants, ", ")));
    return false;
  }

  NodePtr Additive() {
    return Arithmetic({{"+", Op::kAdd}, {"-", Op::kSubtract}}, [this] {
      return Arithmetic(
          {{"*", Op::kMultiply}, {"/", Op::kDivide}, {"%", Op::kModulo}},
          [this] { return Unary(); });
    });
  }

  template <typename Operand>
  NodePtr Arithmetic(
      const std::vector<std::pair<absl::string_view, Op>>& symbols,
      Operand operand) {
    NodePtr left = operand();
    while (left != nullptr) {
      const auto found =
          std::find_if(symbols.begin(), symbols.end(),
                       [this](const auto& symbol) { return Is(symbol.first); });
      if (found == symbols.end()) return left;
      const size_t offset = token().offset;
      if (!Advance()) return nullptr;
      NodePtr right = operand();
      if (right == nullptr) return nullptr;
      if (left->type != right->type || !IsNumeric(left) ||
          (found->second == Op::kModulo && left->type != ExprType::kInt)) {
        return Fail(
            offset,
            absl::StrCat(
                "\"", found->first, "\" between ", ExprTypeName(left->type),
                " and ", ExprTypeName(right->type), ", expected two ",
                found->second == Op::kModulo ? "ints" : "ints or two doubles",
                MixedHint(left, right)));
      }
      const ExprType type = left->type;
      left = MakeNode(found->second, type, {left, right}, offset);
    }
    return left;
  }

  NodePtr Unary() {
    if (!Is("!") && !Is("-")) return Primary();
    const Nesting nesting(&depth_);
    const Token symbol = token();
    if (depth_ > kMaxDepth) {
      return Fail(symbol.offset,
                  absl::StrCat("nested more than ", kMaxDepth, " levels deep"));
    }
    if (!Advance()) return nullptr;
    if (symbol.text == "-" && token().kind == Token::kInt) {
      // Before the sign is applied, -2^63 is out of range.
      const int64_t value = static_cast<int64_t>(0 - token().integer);
      if (!Advance()) return nullptr;
      return MakeConstant(ExprType::kInt, value, symbol.offset);
    }
    NodePtr operand = Unary();
    if (operand == nullptr) return nullptr;
    if (symbol.text == "!") {
      if (operand->type != ExprType::kBool) {
        return Mismatch(operand, "the operand of !", "a bool");
      }
      return MakeNode(Op::kNot, ExprType::kBool, {operand}, symbol.offset);
    }
    if (!IsNumeric(operand)) {
      return Mismatch(operand, "the operand of -", "a number");
    }
    const ExprType type = operand->type;
    return MakeNode(Op::kNegate, type, {operand}, symbol.offset);
  }

  NodePtr Primary() {
    const Token token = this->token();
    switch (token.kind) {
      case Token::kInt:
        if (token.integer > uint64_t{std::numeric_limits<int64_t>::max()}) {
          return Fail(token.offset,
                      absl::StrCat("\"", token.text, "\" exceeds 64 bits"));
        }
        if (!Advance()) return nullptr;
        return MakeConstant(ExprType::kInt, static_cast<int64_t>(token.integer),
                            token.offset);
      case Token::kDouble:
        if (!Advance()) return nullptr;
        return MakeConstant(ExprType::kDouble, BitsFromDouble(token.number),
                            token.offset);
      case Token::kString: {
        if (!Advance()) return nullptr;
        auto node = std::make_shared<Node>();
        node->type = ExprType::kString;
        node->value = scope_->Intern(token.text);
        node->text = token.text;
        node->offset = token.offset;
        return node;
      }
      case Token::kName:
        if (!Advance()) return nullptr;
        return Name(token);
      default:
        break;
    }
    if (!Is("(")) return Unexpected("a value");
    if (!Advance()) return nullptr;
    NodePtr inner = Conditional();
    if (inner == nullptr || !Expect(")")) return nullptr;
    return inner;
  }

  NodePtr Name(const Token& name) {
    if (name.text == "true" || name.text == "false") {
      return MakeConstant(ExprType::kBool, name.text == "true", name.offset);
    }
    // A knob may be called attr or fact, and was before there were those.
    if (name.text == "dim" || name.text == "hw" ||
        ((name.text == "attr" || name.text == "fact") && Is("."))) {
      return Member(name);
    }
    if (Is("(")) return Call(name);
    if (const auto let = scope_->lets_.find(name.text);
        let != scope_->lets_.end()) {
      return Expand(let->second, name);
    }
    int index = 0;
    const Scope::Knob* knob = scope_->Find(name.text, &index);
    if (knob == nullptr) {
      return Fail(name.offset,
                  absl::StrCat("unknown name \"", name.text,
                               "\", expected a knob (", scope_->KnobNames(),
                               "), dim.NAME, attr.NAME, hw.NAME or fact.NAME"));
    }
    return MakeKnob(index, knob->type, knob->name, name.offset);
  }

  // A copy of what a let stands for; its places are that of the name.
  NodePtr Expand(const NodePtr& node, const Token& name) {
    if (++expanded_ > kMaxNodes) {
      return Fail(name.offset, absl::StrCat("the lets stand for more than ",
                                            kMaxNodes, " operations"));
    }
    auto copy = std::make_shared<Node>(*node);
    copy->offset = name.offset;
    for (NodePtr& arg : copy->args) {
      arg = Expand(arg, name);
      if (arg == nullptr) return nullptr;
    }
    return copy;
  }

  NodePtr Member(const Token& space) {
    if (!Expect(".")) return nullptr;
    const Token member = token();
    if (member.kind != Token::kName) return Unexpected("a name");
    if (!Advance()) return nullptr;
    auto node = std::make_shared<Node>();
    node->op = Op::kParameter;
    node->text = absl::StrCat(space.text, ".", member.text);
    node->offset = space.offset;
    if (space.text == "attr") {
      const auto found = scope_->attributes_.find(member.text);
      if (found == scope_->attributes_.end()) {
        return Fail(
            member.offset,
            absl::StrCat("unknown attribute \"attr.", member.text, "\", ",
                         scope_->attributes_.empty()
                             ? std::string("the space declares none")
                             : absl::StrCat("expected one of ",
                                            scope_->AttributeNames())));
      }
      node->type = found->second;
    }
    return node;
  }

  NodePtr Call(const Token& name) {
    if (!Contains(kFunctions, name.text)) {
      return Fail(name.offset, absl::StrCat("unknown function \"", name.text,
                                            "\", expected one of ",
                                            absl::StrJoin(kFunctions, ", ")));
    }
    std::vector<NodePtr> args;
    if (!Expect("(")) return nullptr;
    while (!Is(")")) {
      if (!args.empty() && !Expect(",")) return nullptr;
      args.push_back(Conditional());
      if (args.back() == nullptr) return nullptr;
      if (!IsNumeric(args.back())) {
        return Mismatch(args.back(), absl::StrCat("an argument of ", name.text),
                        "a number");
      }
    }
    if (!Advance()) return nullptr;
    return MakeCall(name, std::move(args));
  }

  NodePtr MakeCall(const Token& name, std::vector<NodePtr> args) {
    const std::string& f = name.text;
    const bool variadic = f == "min" || f == "max";
    const size_t expected = variadic || f == "ceil_div" ? 2 : 1;
    if (variadic ? args.size() < expected : args.size() != expected) {
      return Fail(name.offset,
                  absl::StrCat(f, " has ", args.size(), " arguments, expected ",
                               variadic ? "at least " : "", expected));
    }
    for (const NodePtr& arg : args) {
      if (arg->type != args[0]->type) {
        return Fail(arg->offset, absl::StrCat("the arguments of ", f, " mix ",
                                              ExprTypeName(args[0]->type),
                                              " and ", ExprTypeName(arg->type),
                                              MixedHint(args[0], arg)));
      }
    }
    const ExprType type = args[0]->type;
    if (f == "double") {
      return MakeNode(Op::kToDouble, ExprType::kDouble, args, name.offset);
    }
    if (f == "int") {
      return MakeNode(Op::kToInt, ExprType::kInt, args, name.offset);
    }
    if (f == "log2") return MakeNode(Op::kLog2, type, args, name.offset);
    if (f == "ceil_div") {
      if (type != ExprType::kInt) {
        return Mismatch(args[0], "an argument of ceil_div", "an int");
      }
      return MakeNode(Op::kCeilDiv, type, args, name.offset);
    }
    NodePtr result = args[0];
    for (size_t i = 1; i < args.size(); ++i) {
      result = MakeNode(f == "min" ? Op::kMin : Op::kMax, type,
                        {result, args[i]}, name.offset);
    }
    return result;
  }

  NodePtr Mismatch(const NodePtr& node, absl::string_view what,
                   absl::string_view expected) {
    return Fail(node->offset,
                absl::StrCat(what, " is ", ExprTypeName(node->type),
                             ", expected ", expected));
  }

  static std::string MixedHint(const NodePtr& a, const NodePtr& b) {
    return IsNumeric(a) && IsNumeric(b) && a->type != b->type
               ? "; convert with double(x) or int(x)"
               : "";
  }

  const absl::string_view text_;
  ExpressionLexer lexer_;
  Scope* const scope_;
  int depth_ = 0;
  int expanded_ = 0;
};

absl::StatusOr<Expression> Expression::Parse(absl::string_view text,
                                             Scope* scope,
                                             size_t* error_offset) {
  return ExpressionParser(text, scope).Parse(error_offset);
}

}  // namespace optrail::tuning
