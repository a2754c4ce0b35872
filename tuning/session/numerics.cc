#include "tuning/session/numerics.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/numerics_text.h"

namespace optrail::tuning {
namespace {

constexpr char kNumerics[] = "numerics";
constexpr char kBatchInvariant[] = "batch_invariant";
// Programs read facts as JSON numbers, of which 53 bits are exact.
constexpr int kBits = 48;

using Facts = google::protobuf::RepeatedPtrField<proto::Fact>;

void Add(const char* name, int64_t value, Facts* facts) {
  proto::Fact& fact = *facts->Add();
  fact.set_name(name);
  fact.set_value(value);
  std::sort(facts->begin(), facts->end(),
            [](const proto::Fact& a, const proto::Fact& b) {
              return a.name() < b.name();
            });
}

}  // namespace

void AddNumerics(uint64_t bits, Facts* facts) {
  Add(kNumerics, static_cast<int64_t>(bits >> (64 - kBits)), facts);
}

void AddBatchInvariance(bool is_invariant, Facts* facts) {
  Add(kBatchInvariant, is_invariant ? 1 : 0, facts);
}

void CopyNumerics(const proto::Trial& from, proto::Trial* to) {
  for (const proto::Fact& fact : from.facts()) {
    if (fact.name() == kNumerics || fact.name() == kBatchInvariant) {
      *to->add_facts() = fact;
    }
  }
}

std::string NumericsOf(const proto::Trial& trial) {
  NumericsClass numerics;
  for (const proto::Fact& fact : trial.facts()) {
    if (fact.name() == kNumerics) {
      numerics.bits = absl::StrFormat("%012x", fact.value());
    } else if (fact.name() == kBatchInvariant) {
      numerics.batch_invariant = fact.value() != 0;
    }
  }
  return NumericsText(numerics);
}

std::string NumericsOf(const proto::Session& session,
                       const proto::Config& config) {
  const std::string text = CanonicalText(config);
  for (const proto::Trial& trial : session.trials()) {
    if (CanonicalText(trial.config()) != text) continue;
    if (std::string known = NumericsOf(trial); !known.empty()) return known;
  }
  return "";
}

}  // namespace optrail::tuning
