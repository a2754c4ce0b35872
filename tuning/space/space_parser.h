#ifndef OPTRAIL_TUNING_SPACE_SPACE_PARSER_H_
#define OPTRAIL_TUNING_SPACE_SPACE_PARSER_H_

// What a space file says, checked and ready to be bound. Code outside this
// folder uses Space (space.h).

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/config.pb.h"
#include "tuning/space/expression.h"
#include "tuning/space/space.pb.h"

namespace optrail::tuning {

// One knob of a config; a split is several.
struct ParsedKnob {
  enum Kind { kInts, kDivisors, kSplitPart, kBoolean, kVariants };
  std::string name;
  Kind kind = kInts;
  std::vector<int64_t> ints;  // sorted; kInts only
  std::vector<std::string> variants;
  std::string dim;  // kDivisors, kSplitPart
  int64_t min = 1;  // kDivisors
  int64_t max = 0;
  int split_first = 0;  // kSplitPart: the knobs of this split
  int split_parts = 0;
  bool compile_time = false;
  std::string doc;
  std::string location;  // "file:line:column"
  // The value in configs that were stored before the knob existed.
  absl::optional<proto::KnobValue> absent;

  bool ordinal() const { return kind != kBoolean && kind != kVariants; }
};

struct ParsedExpression {
  Expression expr;
  std::string text;  // as written
  std::string why;
  std::string location;
  // The place of each parameter: (name, "file:line:column").
  std::vector<std::pair<std::string, std::string>> parameters;
};

struct ParsedSpace {
  std::string filename;
  proto::Space proto;
  std::string canonical_text;
  std::string hash;
  std::vector<ParsedKnob> knobs;
  std::vector<ParsedExpression> constraints;
  // Those that read facts of compilation: looked at once a config is compiled.
  std::vector<ParsedExpression> fact_constraints;
  absl::optional<ParsedExpression> prior;
  // A value for every knob, in the order of `knobs`.
  proto::Config default_config;
  struct DefaultWhere {
    ParsedExpression where;
    // By index of knob; of several the prior chooses.
    std::vector<std::pair<int, std::vector<proto::KnobValue>>> values;
    // By index of knob; numbers and booleans.
    std::vector<std::pair<int, ParsedExpression>> computed;
  };
  std::vector<DefaultWhere> default_where;
  std::vector<std::string> dims;               // sorted
  Attributes attributes;                       // with their defaults
  std::map<std::string, int64_t> absent_dims;  // values where shapes lack them
  Scope scope;
};

// The knob's value as a number: of a boolean 0 or 1, of a variant its index.
// nullopt if the value has the wrong type or no such variant.
absl::optional<int64_t> ValueOf(const ParsedKnob& knob,
                                const proto::KnobValue& value);

// "an integer", "true or false", "one of two_pass, online".
std::string ExpectedValue(const ParsedKnob& knob);

absl::StatusOr<std::shared_ptr<const ParsedSpace>> ParseSpace(
    absl::string_view text, absl::string_view filename);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SPACE_SPACE_PARSER_H_
