#include "tuning/session/numerics.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

constexpr char kNumerics[] = "numerics";
// Programs read facts as JSON numbers, of which 53 bits are exact.
constexpr int kBits = 48;

}  // namespace

void AddNumerics(uint64_t bits,
                 google::protobuf::RepeatedPtrField<proto::Fact>* facts) {
  proto::Fact& fact = *facts->Add();
  fact.set_name(kNumerics);
  fact.set_value(static_cast<int64_t>(bits >> (64 - kBits)));
  std::sort(facts->begin(), facts->end(),
            [](const proto::Fact& a, const proto::Fact& b) {
              return a.name() < b.name();
            });
}

std::string NumericsOf(const proto::Trial& trial) {
  for (const proto::Fact& fact : trial.facts()) {
    if (fact.name() == kNumerics) {
      return absl::StrFormat("%012x", fact.value());
    }
  }
  return "";
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
