#include "tuning/space/space_change.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"

namespace optrail::tuning {
namespace {

constexpr int kMoreValues = 2;

std::string TextOf(const proto::Space& space) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(space, &text);
  return text;
}

// The value beyond `last`, which follows `before`: ranges of powers grow by
// factors, others by steps.
int64_t Beyond(int64_t before, int64_t last) {
  const bool grows = before > 0 && last >= 2 * before && last % before == 0;
  const bool shrinks = last > 0 && before >= 2 * last && before % last == 0;
  if (grows) return last * (last / before);
  if (shrinks) return last / (before / last);
  return last + (last - before);
}

void WidenInts(bool upwards, proto::Space::Knob* knob) {
  std::vector<int64_t> values(knob->ints().begin(), knob->ints().end());
  std::sort(values.begin(), values.end());
  if (!upwards) std::reverse(values.begin(), values.end());
  for (int i = 0; i < kMoreValues; ++i) {
    const int64_t last = values.back();
    const int64_t next = values.size() < 2
                             ? (upwards ? 2 * last : last / 2)
                             : Beyond(values[values.size() - 2], last);
    if (next < 1 || next == last) break;
    values.push_back(next);
  }
  std::sort(values.begin(), values.end());
  *knob->mutable_ints() = {values.begin(), values.end()};
}

}  // namespace

std::string EqualsText(const proto::KnobValue& value) {
  const std::string text =
      value.has_bool_()     ? (value.bool_() ? "true" : "false")
      : value.has_variant() ? absl::StrCat("'", value.variant(), "'")
                            : absl::StrCat(value.int_());
  return absl::StrCat(value.knob(), " == ", text);
}

absl::StatusOr<std::string> WithWiderKnob(proto::Space space,
                                          absl::string_view knob,
                                          bool upwards) {
  const std::string before = TextOf(space);
  for (proto::Space::Knob& one : *space.mutable_knob()) {
    if (one.name() != knob) continue;
    if (one.ints_size() > 0) {
      WidenInts(upwards, &one);
    } else if (one.has_pow2() && upwards) {
      one.mutable_pow2()->set_max(one.pow2().max() << kMoreValues);
    } else if (one.has_pow2()) {
      one.mutable_pow2()->set_min(
          std::max<int64_t>(1, one.pow2().min() >> kMoreValues));
    } else if (one.has_divisors() && upwards) {
      one.mutable_divisors()->clear_max();
    } else if (one.has_divisors()) {
      one.mutable_divisors()->clear_min();
    }
  }
  std::string text = TextOf(space);
  if (text == before) {
    return absl::InvalidArgumentError(
        absl::StrCat("knob ", knob, ": there is no range that ends ",
                     upwards ? "at its largest value" : "at its smallest"));
  }
  return text;
}

std::string WithoutPrior(proto::Space space) {
  space.clear_prior();
  return TextOf(space);
}

std::string WithConstraint(proto::Space space, absl::string_view expr,
                           absl::string_view why) {
  proto::Space::Constraint& constraint = *space.add_constraint();
  constraint.set_expr(std::string(expr));
  constraint.set_why(std::string(why));
  return TextOf(space);
}

std::string WithDefault(absl::string_view text, const proto::Config& config) {
  proto::Space rule;
  proto::Space::DefaultWhere& where = *rule.add_default_where();
  where.set_expr("true");
  where.set_why("the search is around this config");
  for (const proto::KnobValue& value : config.set()) {
    proto::Space::Value& set = *where.add_set();
    set.set_knob(value.knob());
    if (value.has_bool_()) {
      set.set_bool_(value.bool_());
    } else if (value.has_variant()) {
      set.set_variant(value.variant());
    } else {
      set.set_int_(value.int_());
    }
  }
  return absl::StrCat(text, "\n", TextOf(rule));
}

}  // namespace optrail::tuning
