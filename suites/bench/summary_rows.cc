#include "suites/bench/summary_rows.h"

#include <map>
#include <set>

#include "tracker/series/series_key.h"

namespace optrail::suites {
namespace {

proto::BenchmarkKey KeyOf(const proto::BenchmarkResult& result,
                          proto::ConfigSelection selection,
                          bool without_backend) {
  proto::BenchmarkKey key = result.key();
  key.set_selection(selection);
  key.clear_objective();
  if (without_backend) key.clear_backend();
  return key;
}

}  // namespace

std::vector<SummaryRow> SummaryRows(const proto::Run& run) {
  std::map<std::string, size_t> by_default;  // keys, to places among `rows`
  std::set<std::string> measured;            // whatever the backend
  for (const proto::BenchmarkResult& result : run.results()) {
    if (result.outcome() != proto::OK) continue;
    measured.insert(tracker::CanonicalText(
        KeyOf(result, proto::DEFAULT, /*without_backend=*/true)));
  }
  std::vector<SummaryRow> rows;
  for (const proto::BenchmarkResult& result : run.results()) {
    const std::string key = tracker::CanonicalText(
        KeyOf(result, proto::DEFAULT, /*without_backend=*/false));
    const bool is_default = result.key().selection() == proto::DEFAULT;
    const bool is_tuned = result.key().selection() == proto::TUNED;
    if (result.outcome() == proto::UNSUPPORTED &&
        measured.count(tracker::CanonicalText(
            KeyOf(result, proto::DEFAULT, /*without_backend=*/true))) > 0) {
      continue;
    }
    const auto twin = by_default.find(key);
    if (is_tuned && result.outcome() == proto::OK && twin != by_default.end() &&
        rows[twin->second].result->config() == result.config()) {
      rows[twin->second].label =
          result.config_source() == proto::FALLBACK_TO_DEFAULT
              ? "not tuned"
              : "the tuned config is the default";
      continue;
    }
    if (is_default && result.outcome() == proto::OK) {
      by_default[key] = rows.size();
    }
    rows.push_back({&result, ""});
  }
  return rows;
}

}  // namespace optrail::suites
