#include "tuning/space/expression.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Scope TestScope() {
  Scope scope;
  scope.AddKnob("a", ExprType::kInt);
  scope.AddKnob("b", ExprType::kInt);
  scope.AddKnob("flag", ExprType::kBool);
  scope.AddKnob("algorithm", ExprType::kString, {"two_pass", "online"});
  scope.AddAttribute("padding", ExprType::kInt);
  scope.AddAttribute("act", ExprType::kString);
  return scope;
}

Expression::Value Parameter(absl::string_view name) {
  if (name == "attr.padding") return 3;
  // The third string of the test scope, were it not for a literal before it.
  if (name == "attr.act") return {2, "relu"};
  if (name == "dim.n") return 100;
  if (name == "dim.zero") return 0;
  if (name == "hw.cores") return 8;
  return -1;
}

struct Value {
  EvalError error;
  int64_t bits;
};

// Evaluates with a=6, b=4, flag=true, algorithm=online.
Value Evaluate(const std::string& text) {
  Scope scope = TestScope();
  size_t offset = 0;
  const absl::StatusOr<Expression> expr =
      Expression::Parse(text, &scope, &offset);
  EXPECT_TRUE(expr.ok()) << text << ": " << expr.status();
  if (!expr.ok()) return {EvalError::kNone, -1};
  Frame frame(scope.knob_count());
  const SlotProgram program = frame.Compile(expr->Bind(Parameter));
  std::vector<int64_t> slots = frame.slots();
  slots[0] = 6;
  slots[1] = 4;
  slots[2] = 1;
  slots[3] = scope.Intern("online");
  const EvalError error = program.Run(slots.data());
  return {error, slots[program.result()]};
}

int64_t Int(const std::string& text) {
  const Value value = Evaluate(text);
  EXPECT_EQ(value.error, EvalError::kNone) << text;
  return value.bits;
}

double Double(const std::string& text) { return DoubleFromBits(Int(text)); }

// "OFFSET: message" of an expression that must not parse.
std::string ParseError(const std::string& text) {
  Scope scope = TestScope();
  size_t offset = 0;
  const absl::StatusOr<Expression> expr =
      Expression::Parse(text, &scope, &offset);
  EXPECT_FALSE(expr.ok()) << text << " is " << expr->CanonicalText();
  return absl::StrCat(offset, ": ", expr.status().message());
}

TEST(ExpressionTest, FollowsThePrecedenceOfCel) {
  EXPECT_EQ(Int("1 + 2 * 3"), 7);
  EXPECT_EQ(Int("(1 + 2) * 3"), 9);
  EXPECT_EQ(Int("10 - 4 - 3"), 3);
  EXPECT_EQ(Int("100 / 7 % 5"), 4);
  EXPECT_EQ(Int("-a + b"), -2);
  EXPECT_EQ(Int("- - a"), 6);
  EXPECT_EQ(Int("true || false && false"), 1);
  EXPECT_EQ(Int("1 < 2 && 3 >= 3"), 1);
  EXPECT_EQ(Int("!flag || a == 6"), 1);
  EXPECT_EQ(Int("flag ? 1 : flag ? 2 : 3"), 1);
  EXPECT_EQ(Int("!flag ? 1 : !flag ? 2 : 3"), 3);
}

TEST(ExpressionTest, DividesTowardsZero) {
  EXPECT_EQ(Int("-7 / 2"), -3);
  EXPECT_EQ(Int("-7 % 2"), -1);
  EXPECT_EQ(Int("7 / -2"), -3);
  EXPECT_EQ(Int("7 % -2"), 1);
  EXPECT_EQ(Int("ceil_div(7, 2)"), 4);
  EXPECT_EQ(Int("ceil_div(-7, 2)"), -3);
  EXPECT_EQ(Int("ceil_div(-7, -2)"), 4);
  EXPECT_EQ(Int("ceil_div(a, 3)"), 2);
}

TEST(ExpressionTest, ReadsKnobsDimensionsAndHardware) {
  EXPECT_EQ(Int("a * dim.n + hw.cores"), 608);
  EXPECT_EQ(Int("a * attr.padding"), 18);
  EXPECT_EQ(Int("algorithm == 'online'"), 1);
  EXPECT_EQ(Int("algorithm != \"online\""), 0);
  EXPECT_EQ(Int("algorithm in ['two_pass']"), 0);
  EXPECT_EQ(Int("algorithm in ['two_pass', 'online']"), 1);
  EXPECT_EQ(Int("a in [1, b + 2]"), 1);
  EXPECT_EQ(Int("a in []"), 0);
}

TEST(ExpressionTest, ComputesFunctions) {
  EXPECT_EQ(Int("min(a, b, 5)"), 4);
  EXPECT_EQ(Int("max(a, b)"), 6);
  EXPECT_EQ(Int("log2(a)"), 2);
  EXPECT_EQ(Int("log2(1)"), 0);
  EXPECT_DOUBLE_EQ(Double("log2(8.0)"), 3);
  EXPECT_DOUBLE_EQ(Double("double(a) / double(b)"), 1.5);
  EXPECT_EQ(Int("int(double(a) / 4.0)"), 1);
  EXPECT_EQ(Int("int(-1.9)"), -1);
  EXPECT_DOUBLE_EQ(Double("-min(1e3, 2.5) + 0.5"), -2.0);
  EXPECT_EQ(Int("0.1 + 0.2 < 0.31"), 1);
}

TEST(ExpressionTest, ReportsWhatHasNoValue) {
  EXPECT_EQ(Evaluate("9223372036854775807 + a").error, EvalError::kOverflow);
  EXPECT_EQ(Evaluate("-9223372036854775808 - a").error, EvalError::kOverflow);
  EXPECT_EQ(Evaluate("a * 4611686018427387904").error, EvalError::kOverflow);
  EXPECT_EQ(Evaluate("-(-9223372036854775808 + (a - 6))").error,
            EvalError::kOverflow);
  EXPECT_EQ(Evaluate("(-9223372036854775808 + (a - 6)) / -1").error,
            EvalError::kOverflow);
  EXPECT_EQ(Int("(-9223372036854775808 + (a - 6)) % -1"), 0);
  EXPECT_EQ(Evaluate("a / (b - 4)").error, EvalError::kDivisionByZero);
  EXPECT_EQ(Evaluate("a % dim.zero").error, EvalError::kDivisionByZero);
  EXPECT_EQ(Evaluate("ceil_div(a, 0)").error, EvalError::kDivisionByZero);
  EXPECT_EQ(Evaluate("log2(b - a)").error, EvalError::kDomain);
  EXPECT_EQ(Evaluate("int(1e300)").error, EvalError::kOverflow);
  EXPECT_EQ(Evaluate("int(0.0 / 0.0)").error, EvalError::kOverflow);
}

TEST(ExpressionTest, SkipsWhatTheLeftSideDecides) {
  EXPECT_EQ(Int("b == 4 || a / 0 == 1"), 1);
  EXPECT_EQ(Int("b != 4 && a / 0 == 1"), 0);
  EXPECT_EQ(Int("flag ? a : a / 0"), 6);
  EXPECT_EQ(Evaluate("a / 0 == 1 || b == 4").error, EvalError::kDivisionByZero);
}

TEST(ExpressionTest, RefusesWhatCelOrPeopleWouldMisread) {
  EXPECT_EQ(ParseError("a = 5"),
            "2: \"=\" assigns nothing here; equality is written ==");
  EXPECT_EQ(ParseError("1 < a < 8"),
            "6: comparisons can't be chained: write a < b && b < c");
  EXPECT_THAT(ParseError("a == b == 1"), HasSubstr("chained"));
  EXPECT_THAT(ParseError("a + 1.5"), HasSubstr("2: \"+\" between int and "
                                               "double"));
  EXPECT_THAT(ParseError("a < 1.5"), HasSubstr("double(x)"));
  EXPECT_THAT(ParseError("a & b"), HasSubstr("2: expected \"&&\""));
  EXPECT_THAT(ParseError("1.5 % 1.0"), HasSubstr("expected two ints"));
  EXPECT_THAT(ParseError("flag < true"), HasSubstr("orders numbers"));
  EXPECT_THAT(ParseError("a && flag"), HasSubstr("0: an operand of && is int"));
  EXPECT_THAT(ParseError("!a"), HasSubstr("1: the operand of ! is int"));
  EXPECT_THAT(ParseError("a ? 1 : 2"), HasSubstr("the condition"));
  EXPECT_THAT(ParseError("flag ? 1 : 2.0"), HasSubstr("the same type"));
}

TEST(ExpressionTest, NamesWhatItDoesNotKnow) {
  EXPECT_THAT(ParseError("a + unrol"),
              HasSubstr("4: unknown name \"unrol\", expected a knob (a, b, "));
  EXPECT_THAT(ParseError("a * attr.pading"),
              HasSubstr("9: unknown attribute \"attr.pading\", expected one of "
                        "act, padding"));
  EXPECT_THAT(ParseError("attr.act > 'a'"), HasSubstr("orders numbers"));
  EXPECT_THAT(ParseError("attr.act == 1"),
              HasSubstr("compares string with int"));
  EXPECT_THAT(ParseError("attr > 1"), HasSubstr("unknown name \"attr\""));
  EXPECT_THAT(ParseError("sqrt(a)"), HasSubstr("unknown function \"sqrt\""));
  EXPECT_THAT(ParseError("algorithm == 'onlin'"),
              HasSubstr("13: knob \"algorithm\" has no variant 'onlin'"));
  EXPECT_THAT(ParseError("algorithm in ['online', 'x']"),
              HasSubstr("has no variant 'x'"));
  EXPECT_THAT(ParseError("min(a)"), HasSubstr("expected at least 2"));
  EXPECT_THAT(ParseError("log2(a, b)"), HasSubstr("expected 1"));
}

TEST(ExpressionTest, RefusesBrokenText) {
  EXPECT_EQ(ParseError(""), "0: expected a value, found the end");
  EXPECT_THAT(ParseError("a +"), HasSubstr("3: expected a value"));
  EXPECT_THAT(ParseError("(a"), HasSubstr("expected \")\", found the end"));
  EXPECT_THAT(ParseError("a b"), HasSubstr("2: expected an operator"));
  EXPECT_THAT(ParseError("'abc"), HasSubstr("without a closing"));
  EXPECT_THAT(ParseError("'a\\n'"), HasSubstr("escape"));
  EXPECT_THAT(ParseError("9223372036854775808"), HasSubstr("exceeds 64 bits"));
  EXPECT_THAT(ParseError("99999999999999999999"), HasSubstr("no number"));
  EXPECT_THAT(ParseError("1x"), HasSubstr("no number"));
  EXPECT_THAT(ParseError("a # b"), HasSubstr("2: unexpected character"));
  EXPECT_THAT(ParseError(std::string("a\0", 2)), HasSubstr("\\x0"));
}

TEST(ExpressionTest, LimitsNesting) {
  EXPECT_THAT(ParseError(std::string(200, '(') + "a" + std::string(200, ')')),
              HasSubstr("nested more than 64"));
  EXPECT_THAT(ParseError(std::string(200, '!') + "flag"),
              HasSubstr("nested more than 64"));
  EXPECT_THAT(ParseError(std::string(5000, ' ') + "a"),
              HasSubstr("expected at most 4096"));
  std::string sum = "a";
  for (int i = 0; i < 1000; ++i) sum += "+1";
  EXPECT_EQ(Int(sum), 1006);
}

TEST(ExpressionTest, KnowsWhatItReads) {
  Scope scope = TestScope();
  const Expression expr =
      *Expression::Parse("a <= dim.n && !flag", &scope, nullptr);
  EXPECT_EQ(expr.knobs(), 0b101u);
  ASSERT_EQ(expr.Parameters().size(), 1u);
  EXPECT_EQ(expr.Parameters()[0].name, "dim.n");
  EXPECT_EQ(expr.Parameters()[0].offset, 5u);
  EXPECT_EQ(expr.Conjuncts().size(), 2u);
}

TEST(ExpressionTest, CanonicalTextReadsBackAndIgnoresLayout) {
  Scope scope = TestScope();
  for (const char* text :
       {"a*b<=dim.n||!flag", "a in [1,2] ? -a : max(b, 3, -4)",
        "algorithm == \"online\" && -1.5e-7 < 2.0",
        "double(a) / 1e300 > 0.1"}) {
    const Expression expr = *Expression::Parse(text, &scope, nullptr);
    const std::string canonical = expr.CanonicalText();
    const auto again = Expression::Parse(canonical, &scope, nullptr);
    ASSERT_TRUE(again.ok()) << canonical << again.status();
    EXPECT_EQ(again->CanonicalText(), canonical);
  }
  EXPECT_EQ(Expression::Parse(" a*b ", &scope, nullptr)->CanonicalText(),
            Expression::Parse("(a * b)", &scope, nullptr)->CanonicalText());
}

TEST(ExpressionTest, FoldsConstantsWhenBound) {
  Scope scope = TestScope();
  const auto bound = [&](const char* text) {
    return Expression::Parse(text, &scope, nullptr)
        ->Bind(Parameter)
        .CanonicalText();
  };
  EXPECT_EQ(bound("dim.n * 4 <= hw.cores * 100"), "true");
  EXPECT_EQ(bound("dim.n > 5 && a > b"), "(b < a)");
  EXPECT_EQ(bound("dim.n > 5 || a / 0 > b"), "true");
  EXPECT_EQ(bound("a > b || dim.n > 5"), "((b < a) || true)");
  EXPECT_EQ(bound("dim.n / dim.zero == 1"), "((100 / 0) == 1)");
}

// Expressions whose parts stand in them again, some of them where only some
// values of the knobs compute them.
class RandomExpressions {
 public:
  explicit RandomExpressions(uint32_t seed) : random_(seed) {}

  std::string Draw() {
    std::vector<std::string> ints = {"a", "b", "1", "3"};
    std::vector<std::string> bools = {"a < b", "b in [1, a, a / (b - 4)]"};
    const auto any = [this](const std::vector<std::string>& of) {
      return absl::StrCat("(", of[random_() % of.size()], ")");
    };
    for (int i = 0; i < 12; ++i) {
      const char* const arithmetic[] = {"+", "-", "*", "/", "%"};
      const char* const comparisons[] = {"<", "==", ">="};
      const char* const logic[] = {"&&", "||"};
      switch (random_() % 5) {
        case 0:
        case 1:
          ints.push_back(
              absl::StrCat(any(ints), arithmetic[random_() % 5], any(ints)));
          break;
        case 2:
          ints.push_back(
              absl::StrCat(any(bools), " ? ", any(ints), " : ", any(ints)));
          break;
        case 3:
          bools.push_back(
              absl::StrCat(any(bools), logic[random_() % 2], any(bools)));
          break;
        case 4:
          bools.push_back(
              absl::StrCat(any(ints), comparisons[random_() % 3], any(ints)));
          break;
      }
    }
    return absl::StrCat("max(", ints.back(), ", ", any(bools), " ? ", any(ints),
                        " : ", any(ints), ")");
  }

 private:
  std::mt19937 random_;
};

TEST(ExpressionTest, SharedPartsHaveTheValueThatEachWouldHave) {
  RandomExpressions random(1);
  int with_value = 0, without = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = random.Draw();
    if (text.size() > 4000) continue;
    const Value value = Evaluate(text);
    // Constants are folded one operation at a time.
    const Value folded = Evaluate(absl::StrReplaceAll(
        text, {{"(a)", "6"},
               {"(b)", "4"},
               {"a < b", "6 < 4"},
               {"b in [1, a, a / (b - 4)]", "4 in [1, 6, 6 / (4 - 4)]"}}));
    ASSERT_EQ(value.error, folded.error) << text;
    if (value.error == EvalError::kNone) {
      ASSERT_EQ(value.bits, folded.bits) << text;
    }
    ++(value.error == EvalError::kNone ? with_value : without);
  }
  EXPECT_GT(with_value, 500);
  EXPECT_GT(without, 100);
}

TEST(ExpressionTest, CutsAreTheLargestDecidedParts) {
  Scope scope = TestScope();
  const auto cuts = [&](const char* text, uint64_t bound) {
    std::vector<std::string> result;
    for (const Expression& cut :
         Expression::Parse(text, &scope, nullptr)->Cuts(bound)) {
      result.push_back(cut.CanonicalText());
    }
    return result;
  };
  EXPECT_THAT(cuts("a * 4 * b <= 100", 0b01), ElementsAre("(a * 4)"));
  EXPECT_THAT(cuts("a % 2 == 0 || b == a", 0b01),
              ElementsAre("((a % 2) == 0)", "a"));
  EXPECT_THAT(cuts("b > 1", 0b01), ElementsAre());
}

}  // namespace
}  // namespace optrail::tuning
