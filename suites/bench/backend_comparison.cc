#include "suites/bench/backend_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/stats/statistics.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

constexpr double kConfidence = 0.95;

std::map<int, double> MediansByRound(const proto::BenchmarkResult& result) {
  std::map<int, double> medians_ns;
  for (const proto::Measurement& measurement : result.measurements()) {
    if (measurement.has_median_ns() && measurement.round() > 0) {
      medians_ns[measurement.round()] = measurement.median_ns();
    }
  }
  return medians_ns;
}

void SetRatio(const proto::BenchmarkResult& over, BackendReading* reading) {
  const std::map<int, double> base = MediansByRound(over);
  std::vector<double> logarithms;
  for (const auto& [round, time_ns] : MediansByRound(*reading->result)) {
    const auto other = base.find(round);
    if (other != base.end()) {
      logarithms.push_back(std::log(time_ns / other->second));
    }
  }
  if (logarithms.empty()) return;
  reading->ratio = std::exp(Mean(logarithms));
  if (logarithms.size() < 2) return;
  const Interval interval = MeanInterval(logarithms, kConfidence);
  reading->ratio_low = std::exp(interval.low);
  reading->ratio_high = std::exp(interval.high);
}

double MedianTimeNs(const proto::BenchmarkResult& result) {
  std::vector<double> medians_ns;
  for (const auto& [round, time_ns] : MediansByRound(result)) {
    medians_ns.push_back(time_ns);
  }
  return medians_ns.empty() ? 0 : Median(medians_ns);
}

proto::BenchmarkKey WithoutBackend(proto::BenchmarkKey key) {
  key.clear_backend();
  return key;
}

std::string BackendName(const proto::BenchmarkResult& result) {
  return result.key().backend().empty()
             ? tuning::DeviceName(result.key().device_kind())
             : result.key().backend();
}

}  // namespace

std::vector<BackendComparison> CompareBackends(const proto::Run& run) {
  std::vector<BackendComparison> all;
  std::map<std::string, size_t> index;
  for (const proto::BenchmarkResult& result : run.results()) {
    const proto::BenchmarkKey key = WithoutBackend(result.key());
    const auto [found, is_new] =
        index.emplace(tracker::CanonicalText(key), all.size());
    if (is_new) all.push_back({key, {}});
    BackendReading reading;
    reading.result = &result;
    reading.median_ns = MedianTimeNs(result);
    all[found->second].readings.push_back(reading);
  }
  for (BackendComparison& comparison : all) {
    if (comparison.key.selection() != proto::TUNED) continue;
    proto::BenchmarkKey key = comparison.key;
    key.set_selection(proto::DEFAULT);
    key.clear_objective();
    const auto by_default = index.find(tracker::CanonicalText(key));
    if (by_default == index.end()) continue;
    for (const BackendReading& reading : all[by_default->second].readings) {
      const auto same_backend = [&](const BackendReading& tuned) {
        return tuned.result->key().backend() == reading.result->key().backend();
      };
      if (std::none_of(comparison.readings.begin(), comparison.readings.end(),
                       same_backend)) {
        comparison.readings.push_back(reading);
      }
    }
  }
  std::vector<BackendComparison> comparisons;
  for (BackendComparison& comparison : all) {
    std::vector<BackendReading>& readings = comparison.readings;
    if (readings.size() < 2) continue;
    const proto::BenchmarkResult* over = readings[0].result;
    for (const BackendReading& reading : readings) {
      if (reading.result->key().backend().empty()) over = reading.result;
    }
    for (BackendReading& reading : readings) SetRatio(*over, &reading);
    std::stable_sort(readings.begin(), readings.end(),
                     [](const BackendReading& a, const BackendReading& b) {
                       if ((a.median_ns > 0) != (b.median_ns > 0)) {
                         return a.median_ns > 0;
                       }
                       return a.median_ns < b.median_ns;
                     });
    comparisons.push_back(std::move(comparison));
  }
  return comparisons;
}

std::string ComparisonText(const std::vector<BackendComparison>& comparisons,
                           int width) {
  Table table({{"benchmark", Align::kLeft, "", Clip::kHeading},
               {"backend"},
               {"time", Align::kRight, "time"},
               {"ratio", Align::kRight, "ratio"},
               {"95% interval", Align::kRight, "interval"},
               {"by", Align::kLeft, "by", Clip::kFold}});
  // By what kept them from it, in the order in which that was met.
  struct Absent {
    std::string why;
    std::string first;  // benchmark
    std::vector<std::string> backends;
    std::set<const proto::BenchmarkResult*> results;
  };
  std::vector<Absent> absent;
  for (const BackendComparison& comparison : comparisons) {
    const std::string name = tracker::DisplayName(comparison.key);
    for (const BackendReading& reading : comparison.readings) {
      const proto::BenchmarkResult& result = *reading.result;
      const bool timed = reading.median_ns > 0;
      const std::string backend = BackendName(result);
      if (timed) {
        table.AddRow(
            {name, backend, FormatDurationNs(reading.median_ns),
             reading.ratio > 0 ? absl::StrFormat("%.3f", reading.ratio) : "-",
             reading.ratio_low > 0
                 ? absl::StrFormat("%.3f to %.3f", reading.ratio_low,
                                   reading.ratio_high)
                 : "-",
             result.library()});
      }
      if (result.outcome() == proto::OK) continue;
      const bool says_it = absl::StartsWith(result.detail(), "unsupported");
      const std::string why = absl::StrCat(
          says_it ? ""
                  : absl::StrCat(tuning::OutcomeName(result.outcome()), ": "),
          result.detail());
      auto found = std::find_if(absent.begin(), absent.end(),
                                [&](const Absent& a) { return a.why == why; });
      if (found == absent.end()) {
        found = absent.insert(absent.end(), {why, name, {}, {}});
      }
      if (!absl::c_linear_search(found->backends, backend)) {
        found->backends.push_back(backend);
      }
      found->results.insert(&result);
    }
  }
  std::string text = table.num_rows() > 0 ? table.ToText(width) : "";
  for (const Absent& a : absent) {
    // A default that stands beside tuned ones is one benchmark all the same.
    const size_t count = a.results.size();
    absl::StrAppend(&text, absl::StrJoin(a.backends, ", "), ", ", count,
                    count == 1 ? " benchmark, " : " benchmarks, the first ",
                    EscapeForTerminal(a.first), ": ", EscapeForTerminal(a.why),
                    "\n");
  }
  return text;
}

std::string FasterThanOursText(
    const std::vector<BackendComparison>& comparisons) {
  std::string text;
  int count = 0;
  for (const BackendComparison& comparison : comparisons) {
    // Ratios are over our own.
    const BackendReading& best = comparison.readings[0];
    if (best.median_ns <= 0 || best.result->key().backend().empty() ||
        best.ratio_high <= 0 || best.ratio_high >= 1) {
      continue;
    }
    ++count;
    absl::StrAppend(
        &text, "  ", EscapeForTerminal(tracker::DisplayName(comparison.key)),
        ": ", BackendName(*best.result),
        absl::StrFormat(
            " %.1f%% faster (%.1f to %.1f%%)\n", 100 * (1 / best.ratio - 1),
            100 * (1 / best.ratio_high - 1), 100 * (1 / best.ratio_low - 1)));
  }
  if (count == 0) return "";
  return absl::StrCat("another backend than our own is faster for ", count,
                      " of ", comparisons.size(), ":\n", text);
}

proto::BestBackend BestOf(const BackendComparison& comparison,
                          const proto::Run& run, const std::string& date) {
  proto::BestBackend best;
  best.set_shape(tuning::CanonicalText(comparison.key.shape()));
  best.set_threads(comparison.key.threads());
  best.set_cache_mode(comparison.key.cache_mode());
  best.set_launch_mode(comparison.key.launch_mode());
  best.set_objective(comparison.key.objective());
  best.set_devices(comparison.key.devices());
  best.set_run_id(run.run_id());
  best.set_date(date);
  for (BackendReading reading : comparison.readings) {
    const proto::Outcome outcome = reading.result->outcome();
    // What is not here at all has no id.
    if (outcome != proto::OK && outcome != proto::CONTENDED &&
        !reading.result->kernel_id().empty()) {
      proto::BestBackend::Refused* refused = best.add_refused();
      refused->set_backend(reading.result->key().backend());
      refused->set_id(reading.result->kernel_id());
      refused->set_why(tuning::OutcomeName(outcome));
    }
    if (reading.median_ns <= 0 || outcome != proto::OK) continue;
    SetRatio(*comparison.readings[0].result, &reading);
    proto::BestBackend::Entry* entry = best.add_entries();
    entry->set_backend(reading.result->key().backend());
    entry->set_id(reading.result->kernel_id());
    entry->set_config(reading.result->config());
    entry->set_time_ns(reading.median_ns);
    entry->set_ratio(reading.ratio);
    entry->set_ratio_low(reading.ratio_low);
    entry->set_ratio_high(reading.ratio_high);
  }
  return best;
}

}  // namespace optrail::suites
