#include "tuning/space/space_parser.h"

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"
#include "tuning/space/knob_values.h"
#include "tuning/space/string_location.h"

namespace optrail::tuning {
namespace {

constexpr size_t kMaxFileBytes = 256 << 10;
constexpr int64_t kMaxCombinations = 32768;

bool ReadsFacts(const ParsedExpression& expression) {
  return std::any_of(expression.parameters.begin(), expression.parameters.end(),
                     [](const auto& parameter) {
                       return absl::StartsWith(parameter.first, "fact.");
                     });
}

class SpaceParser {
 public:
  SpaceParser(absl::string_view text, absl::string_view filename)
      : text_(text), filename_(filename) {}

  absl::StatusOr<std::shared_ptr<const ParsedSpace>> Parse() {
    if (text_.size() > kMaxFileBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(filename_, ": the file has ", text_.size(),
                       " bytes, expected at most ", kMaxFileBytes));
    }
    OPTRAIL_ASSIGN_OR_RETURN(const auto file,
                             ParseTextProto<proto::Space>(text_, filename_));
    space_->filename = std::string(filename_);
    space_->proto = file.message;
    const TextProtoPlace root = file.root();
    if (space_->proto.knob().empty()) {
      return root.Error("the space has no knob, expected at least one");
    }
    for (int i = 0; i < space_->proto.knob_size(); ++i) {
      OPTRAIL_RETURN_IF_ERROR(
          AddKnob(space_->proto.knob(i), root.Child("knob", i)));
    }
    for (int i = 0; i < space_->proto.attribute_size(); ++i) {
      OPTRAIL_RETURN_IF_ERROR(
          AddAttribute(space_->proto.attribute(i), root.Child("attribute", i)));
    }
    for (int i = 0; i < space_->proto.dimension_size(); ++i) {
      OPTRAIL_RETURN_IF_ERROR(
          AddDimension(space_->proto.dimension(i), root.Child("dimension", i)));
    }
    for (int i = 0; i < space_->proto.let_size(); ++i) {
      OPTRAIL_RETURN_IF_ERROR(
          AddLet(space_->proto.let(i), root.Child("let", i)));
    }
    for (int i = 0; i < space_->proto.constraint_size(); ++i) {
      const proto::Space::Constraint& constraint = space_->proto.constraint(i);
      OPTRAIL_ASSIGN_OR_RETURN(
          ParsedExpression parsed,
          ParseExpression(constraint.expr(), root.Child("constraint", i)));
      parsed.why = constraint.why();
      if (parsed.expr.type() != ExprType::kBool) {
        return absl::InvalidArgumentError(absl::StrCat(
            parsed.location, ": the constraint is ",
            ExprTypeName(parsed.expr.type()), ", expected a bool"));
      }
      (ReadsFacts(parsed) ? space_->fact_constraints : space_->constraints)
          .push_back(std::move(parsed));
    }
    OPTRAIL_RETURN_IF_ERROR(AddPrior(root));
    OPTRAIL_RETURN_IF_ERROR(AddDefault(root));
    if (space_->proto.max_instantiations() < 0) {
      return root.Child("max_instantiations")
          .Error(absl::StrCat("max_instantiations is ",
                              space_->proto.max_instantiations(),
                              ", expected 0 (for the default) or more"));
    }
    space_->dims.assign(dims_.begin(), dims_.end());
    space_->canonical_text = CanonicalSpaceText();
    space_->hash = Fingerprint(space_->canonical_text);
    return std::shared_ptr<const ParsedSpace>(std::move(space_));
  }

 private:
  // A value that the default or a rule sets, and where it stands.
  struct GivenValue {
    proto::KnobValue value;
    TextProtoPlace place;
    std::string expr;  // in place of a value
  };

  absl::Status AddAttribute(const proto::Attribute& attribute,
                            const TextProtoPlace& place) {
    if (!IsDimName(attribute.name())) {
      return place.Error(absl::StrCat("attribute name \"", attribute.name(),
                                      "\": expected [A-Za-z_][A-Za-z0-9_]*"));
    }
    if (attribute.value_case() == proto::Attribute::VALUE_NOT_SET ||
        (attribute.has_variant() && !IsVariantName(attribute.variant()))) {
      return place.Error(absl::StrCat(
          "attribute \"", attribute.name(),
          "\" needs the operator's default, expected int: 0 or variant: "
          "\"NAME\""));
    }
    if (FindAttribute(space_->attributes, attribute.name()) != nullptr) {
      return place.Error(absl::StrCat("attribute \"", attribute.name(),
                                      "\" is declared twice"));
    }
    *space_->attributes.Add() = attribute;
    space_->scope.AddAttribute(attribute.name(), attribute.has_variant()
                                                     ? ExprType::kString
                                                     : ExprType::kInt);
    return absl::OkStatus();
  }

  absl::Status AddDimension(const proto::Space::Dimension& dimension,
                            const TextProtoPlace& place) {
    if (!IsDimName(dimension.name())) {
      return place.Error(absl::StrCat("dimension name \"", dimension.name(),
                                      "\": expected [A-Za-z_][A-Za-z0-9_]*"));
    }
    if (dimension.absent() < 1) {
      return place.Error(
          absl::StrCat("dimension \"", dimension.name(), "\" has the value ",
                       dimension.absent(),
                       " where a shape lacks it, expected absent: 1 or more"));
    }
    const bool is_new =
        space_->absent_dims.emplace(dimension.name(), dimension.absent())
            .second;
    if (!is_new) {
      return place.Error(absl::StrCat("dimension \"", dimension.name(),
                                      "\" is declared twice"));
    }
    return absl::OkStatus();
  }

  absl::Status AddLet(const proto::Space::Let& let,
                      const TextProtoPlace& place) {
    if (!IsKnobName(let.name())) {
      return place.Error(
          absl::StrCat("let \"", let.name(),
                       "\": expected [A-Za-z_][A-Za-z0-9_]* that is neither a "
                       "keyword nor a function of expressions"));
    }
    const bool is_knob = std::any_of(
        space_->knobs.begin(), space_->knobs.end(),
        [&](const ParsedKnob& knob) { return knob.name == let.name(); });
    if (is_knob || space_->scope.HasLet(let.name())) {
      return place.Child("name").Error(absl::StrCat(
          "\"", let.name(), "\" is the name of ",
          is_knob ? "a knob" : "another let", ", expected one of its own"));
    }
    OPTRAIL_ASSIGN_OR_RETURN(const ParsedExpression parsed,
                             ParseExpression(let.expr(), place));
    space_->scope.AddLet(let.name(), parsed.expr);
    return absl::OkStatus();
  }

  absl::Status AddKnob(const proto::Space::Knob& knob,
                       const TextProtoPlace& place) {
    if (!IsKnobName(knob.name())) {
      return place.Child("name").Error(
          absl::StrCat("knob name \"", knob.name(),
                       "\": expected [A-Za-z_][A-Za-z0-9_]* that is neither a "
                       "keyword nor a function of expressions"));
    }
    ParsedKnob parsed;
    parsed.name = knob.name();
    parsed.compile_time = knob.compile_time();
    parsed.doc = knob.doc();
    parsed.location = place.ToString();
    OPTRAIL_RETURN_IF_ERROR(ReadValues(knob, place, &parsed));
    if (!parsed.dim.empty()) dims_.insert(parsed.dim);
    if (parsed.kind == ParsedKnob::kSplitPart) {
      parsed.split_first = static_cast<int>(space_->knobs.size());
      for (int part = 0; part < parsed.split_parts; ++part) {
        parsed.name = absl::StrCat(knob.name(), "_", part);
        OPTRAIL_RETURN_IF_ERROR(Push(parsed, place));
      }
      return absl::OkStatus();
    }
    if (!knob.absent().empty()) {
      parsed.absent = ValueFromText(parsed, knob.absent());
      OPTRAIL_RETURN_IF_ERROR(
          CheckDefault(parsed, *parsed.absent, place.Child("absent")));
    }
    return Push(std::move(parsed), place);
  }

  absl::Status Push(ParsedKnob knob, const TextProtoPlace& place) {
    for (const ParsedKnob& other : space_->knobs) {
      if (other.name == knob.name) {
        return place.Child("name").Error(
            absl::StrCat("knob \"", knob.name,
                         "\" is declared twice, first at ", other.location));
      }
    }
    if (space_->scope.knob_count() == Scope::kMaxKnobs) {
      return place.Error(absl::StrCat("knob \"", knob.name,
                                      "\": expected at most ", Scope::kMaxKnobs,
                                      " knobs"));
    }
    const ExprType type = knob.kind == ParsedKnob::kBoolean ? ExprType::kBool
                          : knob.kind == ParsedKnob::kVariants
                              ? ExprType::kString
                              : ExprType::kInt;
    space_->scope.AddKnob(knob.name, type, knob.variants);
    space_->knobs.push_back(std::move(knob));
    return absl::OkStatus();
  }

  // `place` is the message whose field `expr` is read.
  absl::StatusOr<ParsedExpression> ParseExpression(
      const std::string& text, const TextProtoPlace& place) {
    const TextProtoPlace field = place.Child("expr");
    const auto locate = [&](size_t offset) {
      const TextLocation at =
          LocateInString(text_, {field.line(), field.column()}, offset);
      return absl::StrCat(filename_, ":", at.line, ":", at.column);
    };
    if (text.empty()) return field.Error("expr is missing or empty");
    size_t offset = 0;
    absl::StatusOr<Expression> expr =
        Expression::Parse(text, &space_->scope, &offset);
    if (!expr.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(locate(offset), ": ", expr.status().message()));
    }
    ParsedExpression parsed{*expr, text, "", locate(0), {}};
    for (const Expression::Parameter& parameter : expr->Parameters()) {
      parsed.parameters.emplace_back(parameter.name, locate(parameter.offset));
      absl::string_view name = parameter.name;
      if (absl::ConsumePrefix(&name, "dim.")) dims_.insert(std::string(name));
    }
    return parsed;
  }

  absl::Status AddPrior(const TextProtoPlace& root) {
    if (!space_->proto.has_prior()) return absl::OkStatus();
    const TextProtoPlace place = root.Child("prior");
    OPTRAIL_ASSIGN_OR_RETURN(
        ParsedExpression prior,
        ParseExpression(space_->proto.prior().expr(), place));
    if (ReadsFacts(prior)) {
      return absl::InvalidArgumentError(
          absl::StrCat(prior.location,
                       ": the prior reads fact.*, which is known only of what "
                       "was compiled, expected it in constraints alone"));
    }
    if (prior.expr.type() != ExprType::kInt &&
        prior.expr.type() != ExprType::kDouble) {
      return absl::InvalidArgumentError(
          absl::StrCat(prior.location, ": the prior is ",
                       ExprTypeName(prior.expr.type()), ", expected a number"));
    }
    if (space_->proto.prior().top_k() < 0) {
      return place.Child("top_k").Error(
          absl::StrCat("top_k is ", space_->proto.prior().top_k(),
                       ", expected 0 (for no limit) or more"));
    }
    space_->prior = std::move(prior);
    return absl::OkStatus();
  }

  absl::Status AddDefault(const TextProtoPlace& root) {
    if (!space_->proto.has_default_()) {
      return root.Error(
          "the space has no default, expected default { set { ... } } with a "
          "value for every knob");
    }
    const TextProtoPlace place = root.Child("default");
    std::vector<GivenValue> given;
    for (int i = 0; i < space_->proto.default_().set_size(); ++i) {
      given.push_back(
          {space_->proto.default_().set(i), place.Child("set", i), ""});
    }
    OPTRAIL_ASSIGN_OR_RETURN(const auto values,
                             ParseValues(given, "the default"));
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] == nullptr) {
        return place.Error(absl::StrCat("the default lacks knob \"",
                                        space_->knobs[i].name, "\""));
      }
      *space_->default_config.add_set() = values[i]->value;
    }
    return AddDefaultWhere(root);
  }

  absl::Status AddDefaultWhere(const TextProtoPlace& root) {
    for (int i = 0; i < space_->proto.default_where_size(); ++i) {
      const proto::Space::DefaultWhere& given = space_->proto.default_where(i);
      const TextProtoPlace place = root.Child("default_where", i);
      OPTRAIL_ASSIGN_OR_RETURN(ParsedExpression where,
                               ParseExpression(given.expr(), place));
      if (where.expr.type() != ExprType::kBool) {
        return absl::InvalidArgumentError(absl::StrCat(
            where.location, ": default_where is ",
            ExprTypeName(where.expr.type()), ", expected a boolean"));
      }
      OPTRAIL_RETURN_IF_ERROR(CheckReadsNoKnob(where, "default_where"));
      ParsedSpace::DefaultWhere rule{std::move(where), {}, {}};
      OPTRAIL_RETURN_IF_ERROR(AddRuleValues(given, place, rule));
      space_->default_where.push_back(std::move(rule));
    }
    return absl::OkStatus();
  }

  static absl::Status CheckReadsNoKnob(const ParsedExpression& parsed,
                                       absl::string_view what) {
    if (parsed.expr.knobs() == 0 && !ReadsFacts(parsed)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(parsed.location, ": ", what,
                     " reads a knob or a fact, expected dim.*, attr.* and "
                     "hw.* alone"));
  }

  absl::Status AddRuleValues(const proto::Space::DefaultWhere& given,
                             const TextProtoPlace& place,
                             ParsedSpace::DefaultWhere& rule) {
    std::vector<GivenValue> plain;
    for (int i = 0; i < given.set_size(); ++i) {
      const proto::Space::Value& value = given.set(i);
      plain.push_back({{}, place.Child("set", i), ""});
      proto::KnobValue& set = plain.back().value;
      set.set_knob(value.knob());
      if (value.has_int_()) set.set_int_(value.int_());
      if (value.has_bool_()) set.set_bool_(value.bool_());
      if (value.has_variant()) set.set_variant(value.variant());
      plain.back().expr = value.expr();
    }
    OPTRAIL_ASSIGN_OR_RETURN(const auto values,
                             ParseValues(plain, "default_where"));
    int64_t combinations = 1;
    for (size_t k = 0; k < values.size(); ++k) {
      const GivenValue* const value = values[k];
      if (value == nullptr) continue;
      if (!value->expr.empty()) {
        OPTRAIL_ASSIGN_OR_RETURN(ParsedExpression computed,
                                 ParseComputed(space_->knobs[k], *value));
        rule.computed.emplace_back(static_cast<int>(k), std::move(computed));
        continue;
      }
      rule.values.emplace_back(static_cast<int>(k),
                               Alternatives(space_->knobs[k], value->value));
      combinations *= static_cast<int64_t>(rule.values.back().second.size());
      if (combinations > kMaxCombinations) {
        return place.Error(absl::StrCat("default_where has more than ",
                                        kMaxCombinations,
                                        " combinations of alternatives"));
      }
    }
    if (rule.values.empty() && rule.computed.empty()) {
      return place.Error("default_where sets no knob");
    }
    if (combinations > 1 && !space_->prior.has_value()) {
      return place.Error(
          "default_where has alternatives but the space no prior, which "
          "chooses among them");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ParsedExpression> ParseComputed(const ParsedKnob& knob,
                                                 const GivenValue& given) {
    OPTRAIL_ASSIGN_OR_RETURN(ParsedExpression parsed,
                             ParseExpression(given.expr, given.place));
    OPTRAIL_RETURN_IF_ERROR(CheckReadsNoKnob(
        parsed, absl::StrCat("the default of knob \"", knob.name, "\"")));
    const bool fits = knob.ordinal()
                          ? parsed.expr.type() == ExprType::kInt
                          : knob.kind == ParsedKnob::kBoolean &&
                                parsed.expr.type() == ExprType::kBool;
    if (fits) return parsed;
    return absl::InvalidArgumentError(absl::StrCat(
        parsed.location, ": the default of knob \"", knob.name, "\" is ",
        ExprTypeName(parsed.expr.type()), ", expected ",
        knob.ordinal()                      ? "an int"
        : knob.kind == ParsedKnob::kBoolean ? "a bool"
                                            : "a rule for every variant"));
  }

  static proto::KnobValue ValueFromText(const ParsedKnob& knob,
                                        absl::string_view text) {
    proto::KnobValue value;
    value.set_knob(knob.name);
    int64_t number = 0;
    if (knob.ordinal() && absl::SimpleAtoi(text, &number)) {
      value.set_int_(number);
    } else if (knob.kind == ParsedKnob::kBoolean &&
               (text == "true" || text == "false")) {
      value.set_bool_(text == "true");
    } else {
      value.set_variant(std::string(text));
    }
    return value;
  }

  // "64|128" of a knob of integers are two values; any other value is one.
  static std::vector<proto::KnobValue> Alternatives(
      const ParsedKnob& knob, const proto::KnobValue& value) {
    if (!absl::StrContains(value.variant(), '|')) return {value};
    std::vector<proto::KnobValue> alternatives;
    for (absl::string_view text : absl::StrSplit(value.variant(), '|')) {
      alternatives.push_back(ValueFromText(knob, text));
    }
    return alternatives;
  }

  // By index of knob; nullptr for those that are not set. `what` sets them.
  absl::StatusOr<std::vector<const GivenValue*>> ParseValues(
      const std::vector<GivenValue>& given, absl::string_view what) {
    std::vector<const GivenValue*> values(space_->knobs.size());
    for (const GivenValue& one : given) {
      const auto knob = std::find_if(
          space_->knobs.begin(), space_->knobs.end(),
          [&](const ParsedKnob& k) { return k.name == one.value.knob(); });
      if (knob == space_->knobs.end()) {
        return one.place.Error(absl::StrCat(
            what, " sets \"", one.value.knob(),
            "\", which is no knob; expected one of ",
            absl::StrJoin(space_->knobs, ", ",
                          [](std::string* out, const ParsedKnob& k) {
                            absl::StrAppend(out, k.name);
                          })));
      }
      const size_t index = knob - space_->knobs.begin();
      if (values[index] != nullptr) {
        return one.place.Error(
            absl::StrCat(what, " sets knob \"", knob->name, "\" twice"));
      }
      values[index] = &one;
      if (!one.expr.empty()) continue;
      const auto alternatives = Alternatives(*knob, one.value);
      if (alternatives.size() > 1 && what != "default_where") {
        return one.place.Error(absl::StrCat(
            what, " sets knob \"", knob->name,
            "\" to alternatives, expected them in default_where alone"));
      }
      for (const proto::KnobValue& value : alternatives) {
        OPTRAIL_RETURN_IF_ERROR(CheckDefault(*knob, value, one.place));
      }
    }
    return values;
  }

  absl::Status CheckDefault(const ParsedKnob& knob,
                            const proto::KnobValue& value,
                            const TextProtoPlace& at) {
    const absl::optional<int64_t> number = ValueOf(knob, value);
    // Only with a shape is it known whether a divisor fits.
    const bool fits =
        number.has_value() &&
        (knob.kind != ParsedKnob::kInts ||
         std::binary_search(knob.ints.begin(), knob.ints.end(), *number));
    if (fits) return absl::OkStatus();
    return at.Error(absl::StrCat("the default of knob \"", knob.name, "\" is ",
                                 CanonicalText(value), ", expected ",
                                 ExpectedValue(knob)));
  }

  std::string CanonicalSpaceText() const {
    std::string text;
    for (const ParsedKnob& knob : space_->knobs) {
      absl::StrAppend(&text, "knob ", knob.name, " ", knob.kind, " [",
                      absl::StrJoin(knob.ints, ","), "] [",
                      absl::StrJoin(knob.variants, ","), "] ", knob.dim, " ",
                      knob.min, " ", knob.max, " ", knob.split_first, " ",
                      knob.split_parts,
                      knob.compile_time ? " compile_time" : "", "\n");
    }
    if (!space_->attributes.empty()) {
      absl::StrAppend(&text, "attributes ", CanonicalText(space_->attributes),
                      "\n");
    }
    for (const auto& [name, value] : space_->absent_dims) {
      absl::StrAppend(&text, "dimension ", name, " ", value, "\n");
    }
    for (const ParsedExpression& constraint : space_->constraints) {
      absl::StrAppend(&text, "constraint ", constraint.expr.CanonicalText(),
                      "\n");
    }
    if (space_->prior.has_value()) {
      absl::StrAppend(&text, "prior ", space_->prior->expr.CanonicalText(),
                      " top_k ", space_->proto.prior().top_k(), "\n");
    }
    absl::StrAppend(&text, "default ", CanonicalText(space_->default_config),
                    "\n");
    for (const ParsedSpace::DefaultWhere& rule : space_->default_where) {
      proto::Config values;
      std::string others;
      for (const auto& [knob, alternatives] : rule.values) {
        *values.add_set() = alternatives[0];
        for (size_t i = 1; i < alternatives.size(); ++i) {
          absl::StrAppend(&others, " or ", space_->knobs[knob].name, "=",
                          CanonicalText(alternatives[i]));
        }
      }
      for (const auto& [knob, computed] : rule.computed) {
        absl::StrAppend(&others, " ", space_->knobs[knob].name, "=(",
                        computed.expr.CanonicalText(), ")");
      }
      absl::StrAppend(&text, "default_where ", rule.where.expr.CanonicalText(),
                      " ", CanonicalText(values), others, "\n");
    }
    return text;
  }

  const absl::string_view text_;
  const absl::string_view filename_;
  std::shared_ptr<ParsedSpace> space_ = std::make_shared<ParsedSpace>();
  std::set<std::string> dims_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ParsedSpace>> ParseSpace(
    absl::string_view text, absl::string_view filename) {
  return SpaceParser(text, filename).Parse();
}

}  // namespace optrail::tuning
