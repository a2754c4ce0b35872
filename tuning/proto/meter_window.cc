#include "tuning/proto/meter_window.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/stats/statistics.h"

namespace optrail::tuning {
namespace {

// A stranger's record may name a hundred thousand metrics.
using Places = absl::flat_hash_map<absl::string_view, size_t>;

void Add(const proto::MeterWindow& window, absl::string_view metric,
         double value, Places* places, std::vector<MeteredMetric>* metrics) {
  const auto [place, is_new] = places->emplace(metric, metrics->size());
  if (is_new) {
    MeteredMetric& added = metrics->emplace_back();
    added.metric = std::string(metric);
    added.unit = window.unit();
    if (window.direction() == proto::HIGHER_IS_BETTER) {
      added.direction = proto::HIGHER_IS_BETTER;
    }
  }
  MeteredMetric& metered = (*metrics)[place->second];
  metered.per_call.push_back(value / static_cast<double>(window.calls()));
  metered.estimated |= window.estimated();
}

}  // namespace

std::vector<MeteredMetric> MeteredMetrics(
    const proto::Measurement& measurement) {
  std::vector<MeteredMetric> metrics;
  Places places;
  for (const proto::MeterWindow& window : measurement.windows()) {
    if (window.calls() <= 0) continue;
    Add(window, window.metric(), window.value(), &places, &metrics);
    if (window.metric() != kJoules || !window.has_idle_watts()) continue;
    const double seconds = static_cast<double>(window.duration_ns()) * 1e-9;
    const double above = window.value() - window.idle_watts() * seconds;
    // Below what the device takes at rest nothing can be told.
    if (above > 0) Add(window, kJoulesAboveIdle, above, &places, &metrics);
  }
  return metrics;
}

absl::optional<double> MeteredPerCall(const proto::Measurement& measurement,
                                      absl::string_view metric) {
  for (const MeteredMetric& metered : MeteredMetrics(measurement)) {
    if (metered.metric == metric) return Median(metered.per_call);
  }
  return absl::nullopt;
}

std::string WindowText(const proto::MeterWindow& window) {
  std::vector<std::string> parts;
  if (window.estimated()) parts.push_back("estimated");
  if (!window.source().empty()) parts.push_back(window.source());
  if (window.check() == proto::AGREES) {
    parts.push_back("counter and power agree");
  } else if (window.check() == proto::UNCHECKED) {
    parts.push_back("unchecked");
  }
  if (window.shared()) parts.push_back("others used the device meanwhile");
  if (window.has_idle_watts()) {
    parts.push_back(absl::StrFormat("%.4g W at rest", window.idle_watts()));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace optrail::tuning
