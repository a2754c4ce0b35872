#include "tuning/schedule/trace.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace optrail::tuning {
namespace {

bool IsName(absl::string_view text) {
  if (text.empty() || absl::ascii_isdigit(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// "s12" of "s12_tile0".
absl::string_view StageOf(absl::string_view name) {
  return name.substr(0, name.find('_'));
}

}  // namespace

std::string TraceText(const Trace& trace) {
  return absl::StrJoin(trace, ",", absl::PairFormatter("="));
}

absl::StatusOr<Trace> ParseTrace(absl::string_view text) {
  Trace trace;
  if (text.empty()) return trace;
  absl::string_view last;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const size_t equals = part.find('=');
    const absl::string_view name = part.substr(0, equals);
    int64_t value = 0;
    // The text must be as printed: no spaces, no plus sign, no leading zeros.
    if (equals == absl::string_view::npos || !IsName(name) ||
        !absl::SimpleAtoi(part.substr(equals + 1), &value) ||
        absl::StrCat(value) != part.substr(equals + 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("trace: \"", part, "\": expected NAME=INTEGER"));
    }
    if (!trace.empty() && name <= last) {
      return absl::InvalidArgumentError(absl::StrCat(
          "trace: \"", part, "\": expected names in order, each once"));
    }
    last = name;
    trace.emplace_hint(trace.end(), std::string(name), value);
  }
  return trace;
}

Decisions Decisions::Replay(Trace trace) {
  Decisions decisions;
  decisions.given_ = std::move(trace);
  decisions.strict_ = true;
  return decisions;
}

Decisions Decisions::Default() { return Decisions(); }

Decisions Decisions::Prefer(Trace trace) {
  Decisions decisions;
  decisions.given_ = std::move(trace);
  return decisions;
}

Decisions Decisions::Draw(Rng& rng) { return Vary({}, rng); }

Decisions Decisions::DrawAny(Rng& rng) {
  Decisions decisions = Draw(rng);
  decisions.any_ = true;
  return decisions;
}

Decisions Decisions::Vary(Trace trace, Rng& rng) {
  Decisions decisions;
  decisions.given_ = std::move(trace);
  decisions.rng_ = &rng;
  return decisions;
}

int64_t Decisions::Choose(const std::string& name,
                          absl::Span<const int64_t> options, int64_t usual,
                          absl::Span<const int64_t> drawn) {
  int64_t value = usual;
  const auto given = given_.find(name);
  const bool known =
      given != given_.end() &&
      std::find(options.begin(), options.end(), given->second) != options.end();
  if (known) {
    value = given->second;
  } else if (strict_) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(absl::StrCat(
          "trace: decision ", name,
          given == given_.end() ? " is missing"
                                : absl::StrCat(" is ", given->second),
          "; expected one of ", absl::StrJoin(options, ", ")));
    }
  } else if (rng_ != nullptr) {
    if (drawn.empty() || any_) drawn = options;
    value = drawn[rng_->UniformInt(static_cast<int64_t>(drawn.size()))];
  }
  trace_[name] = value;
  return value;
}

absl::Status Decisions::Finish() const {
  if (!strict_ || !status_.ok()) return status_;
  for (const auto& [name, value] : given_) {
    if (trace_.count(name) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("trace: no rule asks for decision ", name, "=", value));
  }
  return absl::OkStatus();
}

Trace Mutated(const Trace& trace, Rng& rng) {
  Trace mutated = trace;
  const int64_t count = 1 + rng.UniformInt(3);
  for (int64_t i = 0; i < count && !mutated.empty(); ++i) {
    auto it = mutated.begin();
    std::advance(it, rng.UniformInt(static_cast<int64_t>(mutated.size())));
    mutated.erase(it);
  }
  return mutated;
}

Trace Crossed(const Trace& a, const Trace& b, Rng& rng) {
  std::map<std::string, bool, std::less<>> from_b;
  const auto takes_b = [&](absl::string_view stage) {
    auto found = from_b.find(stage);
    if (found == from_b.end()) {
      found = from_b.emplace(std::string(stage), rng.UniformInt(2) == 1).first;
    }
    return found->second;
  };
  Trace crossed;
  for (const auto& [name, value] : a) {
    if (!takes_b(StageOf(name))) crossed[name] = value;
  }
  for (const auto& [name, value] : b) {
    if (takes_b(StageOf(name))) crossed[name] = value;
  }
  return crossed;
}

}  // namespace optrail::tuning
