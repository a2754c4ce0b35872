// From a parsed space, a shape and a hardware to levels and bound expressions.

#include <algorithm>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space_tables.h"

namespace optrail::tuning {
namespace {

// Divisors are found by trial division.
constexpr int64_t kMaxDivided = int64_t{1} << 40;

std::vector<int64_t> DivisorsOf(int64_t n, int64_t min, int64_t max) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    divisors.push_back(d);
    if (d != n / d) divisors.push_back(n / d);
  }
  std::sort(divisors.begin(), divisors.end());
  std::vector<int64_t> kept;
  std::copy_if(divisors.begin(), divisors.end(), std::back_inserter(kept),
               [&](int64_t d) { return min <= d && d <= max; });
  return kept;
}

class Binder {
 public:
  Binder(const ParsedSpace& parsed, const proto::Shape& shape,
         const proto::Hardware& hardware, int threads)
      : parsed_(parsed), shape_(shape), dims_(parsed.absent_dims) {
    for (const proto::Dim& dim : shape.dims()) dims_[dim.name()] = dim.value();
    if (hardware.device_kind() == proto::CPU ||
        hardware.device_kind() == proto::DEVICE_KIND_UNSPECIFIED) {
      AddCpu(hardware, threads);
    } else {
      AddPresent(hardware);
    }
    for (const proto::HardwareAttribute& attribute : hardware.attributes()) {
      switch (attribute.value_case()) {
        case proto::HardwareAttribute::kInt:
          attributes_[attribute.name()] = {attribute.int_(), false};
          break;
        case proto::HardwareAttribute::kBool:
          attributes_[attribute.name()] = {attribute.bool_() ? 1 : 0, false};
          break;
        case proto::HardwareAttribute::kReal:
          unreadable_[attribute.name()] = "a real number";
          break;
        case proto::HardwareAttribute::kText:
          unreadable_[attribute.name()] = "text";
          break;
        case proto::HardwareAttribute::VALUE_NOT_SET:
          unreadable_[attribute.name()] = "without a value";
          break;
      }
    }
    for (const proto::Attribute& declared : parsed.attributes) {
      const proto::Attribute* given =
          FindAttribute(shape.attributes(), declared.name());
      shape_attributes_[declared.name()] = given == nullptr ? declared : *given;
    }
  }

 private:
  // What every CPU has; assumed where the machine does not tell.
  void AddCpu(const proto::Hardware& hardware, int threads) {
    const int cores = hardware.has_cores() ? hardware.cores() : 1;
    const auto set = [this](const char* name, bool present, int64_t value,
                            int64_t assumed) {
      attributes_[name] = {present ? value : assumed, !present};
      return present ? value : assumed;
    };
    set("cores", hardware.has_cores(), hardware.cores(), 1);
    set("threads", threads > 0 || hardware.has_cores(),
        threads > 0 ? threads : cores, 1);
    set("l1d_bytes", hardware.has_l1d_bytes(), hardware.l1d_bytes(), 32 << 10);
    const int64_t l2 = set("l2_bytes", hardware.has_l2_bytes(),
                           hardware.l2_bytes(), 256 << 10);
    set("l3_bytes", hardware.has_l3_bytes(), hardware.l3_bytes(), l2);
    set("memory_bytes", hardware.has_memory_bytes(), hardware.memory_bytes(),
        int64_t{1} << 30);
    set("simd_bits", hardware.has_simd_bits(), hardware.simd_bits(), 128);
  }

  // Adds what the record of another device tells; the rest are its attributes.
  void AddPresent(const proto::Hardware& hardware) {
    const auto set = [this](const char* name, bool present, int64_t value) {
      if (present) attributes_[name] = {value, false};
    };
    set("cores", hardware.has_cores(), hardware.cores());
    set("l1d_bytes", hardware.has_l1d_bytes(), hardware.l1d_bytes());
    set("l2_bytes", hardware.has_l2_bytes(), hardware.l2_bytes());
    set("l3_bytes", hardware.has_l3_bytes(), hardware.l3_bytes());
    set("memory_bytes", hardware.has_memory_bytes(), hardware.memory_bytes());
    set("simd_bits", hardware.has_simd_bits(), hardware.simd_bits());
  }

 public:
  absl::StatusOr<Binding> Bind() {
    OPTRAIL_RETURN_IF_ERROR(CheckNames());
    for (const ParsedKnob& knob : parsed_.knobs) {
      OPTRAIL_RETURN_IF_ERROR(AddKnob(knob));
    }
    for (size_t i = 0; i < parsed_.knobs.size(); ++i) {
      AddImplied(parsed_.knobs[i], static_cast<int>(i));
    }
    for (const ParsedExpression& constraint : parsed_.constraints) {
      binding_.constraints.push_back(BindExpression(constraint.expr));
    }
    for (const ParsedExpression& constraint : parsed_.fact_constraints) {
      binding_.fact_constraints.push_back(BindExpression(constraint.expr));
    }
    if (parsed_.prior.has_value()) {
      binding_.prior = BindExpression(parsed_.prior->expr);
    }
    binding_.default_config = parsed_.default_config;
    for (const ParsedSpace::DefaultWhere& rule : parsed_.default_where) {
      if (!Holds(BindExpression(rule.where.expr))) continue;
      binding_.default_rules.push_back(rule.values);
      for (const auto& [knob, computed] : rule.computed) {
        AddComputed(knob, computed);
      }
    }
    for (const auto& [name, attribute] : attributes_) {
      if (!attribute.assumed || !attribute.used) continue;
      binding_.notes.push_back(absl::StrCat("hw.", name,
                                            " is unknown on this hardware; ",
                                            attribute.value, " is assumed"));
    }
    return std::move(binding_);
  }

 private:
  struct Attribute {
    int64_t value = 0;
    bool assumed = false;
    bool used = false;
  };

  // The shape's value, or that of shapes without the dimension.
  absl::optional<int64_t> DimOf(absl::string_view name) const {
    const auto found = dims_.find(std::string(name));
    if (found == dims_.end()) return absl::nullopt;
    return found->second;
  }

  absl::Status MissingDim(absl::string_view location, absl::string_view dim) {
    return absl::InvalidArgumentError(
        absl::StrCat(location, ": the shape ", CanonicalText(shape_),
                     " has no dimension \"", dim, "\""));
  }

  absl::Status CheckAttribute(absl::string_view location,
                              absl::string_view name) {
    const proto::Attribute& declared = *FindAttribute(parsed_.attributes, name);
    const proto::Attribute& given = shape_attributes_.at(std::string(name));
    if (given.value_case() == declared.value_case()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        location, ": attribute \"", name, "\" of the shape ",
        CanonicalText(shape_), " is ", ValueText(given), ", expected ",
        declared.has_int_() ? "an integer" : "a variant's name"));
  }

  absl::Status CheckHardware(absl::string_view location,
                             absl::string_view name) {
    if (attributes_.count(std::string(name)) != 0) return absl::OkStatus();
    if (const auto found = unreadable_.find(std::string(name));
        found != unreadable_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          location, ": attribute \"hw.", name, "\" is ", found->second,
          ", expected an integer or a bool: what expressions read decides "
          "which configs there are, exactly and on every machine"));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        location, ": unknown attribute \"hw.", name, "\", expected one of ",
        absl::StrJoin(attributes_, ", ",
                      [](std::string* out, const auto& attribute) {
                        absl::StrAppend(out, attribute.first);
                      })));
  }

  absl::Status CheckNames() {
    for (const ParsedKnob& knob : parsed_.knobs) {
      if (!knob.dim.empty() && !DimValue(shape_, knob.dim).has_value()) {
        return MissingDim(knob.location, knob.dim);
      }
    }
    std::vector<const ParsedExpression*> expressions;
    for (const auto& constraint : parsed_.constraints) {
      expressions.push_back(&constraint);
    }
    for (const auto& constraint : parsed_.fact_constraints) {
      expressions.push_back(&constraint);
    }
    if (parsed_.prior.has_value()) expressions.push_back(&*parsed_.prior);
    for (const auto& rule : parsed_.default_where) {
      expressions.push_back(&rule.where);
      for (const auto& [knob, computed] : rule.computed) {
        expressions.push_back(&computed);
      }
    }
    for (const ParsedExpression* expression : expressions) {
      for (const auto& [name, location] : expression->parameters) {
        absl::string_view member = name;
        if (absl::ConsumePrefix(&member, "dim.")) {
          if (!DimOf(member).has_value()) {
            return MissingDim(location, member);
          }
        } else if (absl::ConsumePrefix(&member, "attr.")) {
          OPTRAIL_RETURN_IF_ERROR(CheckAttribute(location, member));
        } else if (absl::ConsumePrefix(&member, "hw.")) {
          OPTRAIL_RETURN_IF_ERROR(CheckHardware(location, member));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddKnob(const ParsedKnob& knob) {
    KnobLevels levels;
    levels.name = knob.name;
    levels.ordinal = knob.ordinal();
    std::vector<int64_t> values;
    switch (knob.kind) {
      case ParsedKnob::kInts:
        levels.ints = knob.ints;
        break;
      case ParsedKnob::kDivisors:
      case ParsedKnob::kSplitPart: {
        const int64_t n = *DimOf(knob.dim);
        if (n < 1 || n > kMaxDivided) {
          return absl::InvalidArgumentError(absl::StrCat(
              knob.location, ": knob \"", knob.name, "\" divides dimension \"",
              knob.dim, "\", which is ", n, ", expected 1 to ", kMaxDivided));
        }
        const bool part = knob.kind == ParsedKnob::kSplitPart;
        levels.ints = DivisorsOf(n, part ? 1 : knob.min, part ? n : knob.max);
        if (levels.ints.empty()) {
          return absl::InvalidArgumentError(absl::StrCat(
              knob.location, ": knob \"", knob.name, "\" has no level: ", n,
              ", the value of dimension \"", knob.dim,
              "\", has no divisor between ", knob.min, " and ", knob.max));
        }
        break;
      }
      case ParsedKnob::kBoolean:
        levels.labels = {"false", "true"};
        values = {0, 1};
        break;
      case ParsedKnob::kVariants: {
        levels.labels = knob.variants;
        Scope scope = parsed_.scope;
        for (const std::string& variant : knob.variants) {
          values.push_back(scope.Intern(variant));
        }
        break;
      }
    }
    if (levels.ordinal) {
      values = levels.ints;
      for (int64_t value : values) levels.labels.push_back(absl::StrCat(value));
    }
    binding_.knobs.push_back(std::move(levels));
    binding_.values.push_back(std::move(values));
    return absl::OkStatus();
  }

  // The parts of a split, so far, divide the dimension; all of them are it.
  void AddImplied(const ParsedKnob& knob, int index) {
    if (knob.kind != ParsedKnob::kSplitPart || index == knob.split_first) {
      return;
    }
    const int64_t n = *DimOf(knob.dim);
    std::vector<int> parts;
    for (int i = knob.split_first; i <= index; ++i) parts.push_back(i);
    const bool last = static_cast<int>(parts.size()) == knob.split_parts;
    binding_.implied.push_back(
        last ? Expression::ProductEquals(parsed_.scope, parts, n)
             : Expression::ProductDivides(parsed_.scope, parts, n));
  }

  Expression BindExpression(const Expression& expression) {
    return expression.Bind(
        [this](absl::string_view name) -> absl::optional<Expression::Value> {
          if (absl::ConsumePrefix(&name, "dim.")) return *DimOf(name);
          if (absl::ConsumePrefix(&name, "attr.")) {
            const proto::Attribute& value =
                shape_attributes_.at(std::string(name));
            if (value.has_int_()) return value.int_();
            return Expression::Value(scope_.Intern(value.variant()),
                                     value.variant());
          }
          if (!absl::ConsumePrefix(&name, "hw."))
            return absl::nullopt;  // a fact
          Attribute& attribute = attributes_.at(std::string(name));
          attribute.used = true;
          return attribute.value;
        });
  }

  // The value of an expression that reads no knob; nullopt if it has none.
  static absl::optional<int64_t> Evaluate(const Expression& expression) {
    Frame frame(0);
    const SlotProgram program = frame.Compile(expression);
    std::vector<int64_t> slots = frame.slots();
    if (program.Run(slots.data()) != EvalError::kNone) return absl::nullopt;
    return slots[program.result()];
  }

  // A condition without a value does not hold.
  static bool Holds(const Expression& condition) {
    return Evaluate(condition).value_or(0) != 0;
  }

  void AddComputed(int index, const ParsedExpression& computed) {
    const ParsedKnob& knob = parsed_.knobs[index];
    const auto number = Evaluate(BindExpression(computed.expr));
    if (!number.has_value()) {
      binding_.notes.push_back(
          absl::StrCat(computed.location, ": the default of knob \"", knob.name,
                       "\" has no value here and is left as it was"));
      return;
    }
    proto::KnobValue value;
    value.set_knob(knob.name);
    if (knob.ordinal()) {
      const std::vector<int64_t>& levels = binding_.knobs[index].ints;
      const auto next = std::lower_bound(levels.begin(), levels.end(), *number);
      value.set_int_(next == levels.end() ? levels.back() : *next);
    } else {
      value.set_bool_(*number != 0);
    }
    binding_.default_rules.back().push_back({index, {value}});
  }

  const ParsedSpace& parsed_;
  const proto::Shape& shape_;
  std::map<std::string, int64_t> dims_;
  Scope scope_ = parsed_.scope;  // with the variants of the shape, too
  std::map<std::string, Attribute> attributes_;  // of the hardware
  // What the hardware has beside them, and why expressions can't read it.
  std::map<std::string, std::string> unreadable_;
  std::map<std::string, proto::Attribute> shape_attributes_;
  Binding binding_;
};

}  // namespace

absl::StatusOr<Binding> MakeBinding(const ParsedSpace& parsed,
                                    const proto::Shape& shape,
                                    const proto::Hardware& hardware,
                                    int threads) {
  return Binder(parsed, shape, hardware, threads).Bind();
}

}  // namespace optrail::tuning
