#include "suites/bench/workload_time.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/statistics.h"
#include "base/units.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

double MedianNs(const proto::BenchmarkResult& result) {
  std::vector<double> medians_ns;
  for (const proto::Measurement& measurement : result.measurements()) {
    if (measurement.has_median_ns()) {
      medians_ns.push_back(measurement.median_ns());
    }
  }
  return medians_ns.empty() ? 0 : Median(medians_ns);
}

std::string TimeText(double ns) { return ns > 0 ? FormatDurationNs(ns) : "-"; }

// Of one way to compute a part.
struct WayTime {
  std::string way;
  double best_ns = 0;
  bool complete = true;
};

}  // namespace

WorkloadTime WorkloadTimeOf(const proto::Workload& workload,
                            const proto::Run& run, int threads) {
  WorkloadTime time;
  time.name = workload.name();
  time.threads = threads;
  std::map<std::string, std::string> first_way;  // by part
  for (const proto::Workload::Layer& layer : workload.layer()) {
    LayerTime of_layer;
    of_layer.layer = layer;
    if (!layer.part().empty()) {
      const auto first = first_way.emplace(layer.part(), layer.way()).first;
      of_layer.counts = first->second == layer.way();
    }
    std::string default_config, tuned_config;
    for (const proto::BenchmarkResult& result : run.results()) {
      const proto::BenchmarkKey& key = result.key();
      if (result.outcome() != proto::OK || key.threads() != threads ||
          key.operator_name() != layer.operator_name() ||
          tuning::CanonicalText(key.shape()) != layer.shape()) {
        continue;
      }
      const double all_ns =
          MedianNs(result) * std::max<int32_t>(layer.count(), 1);
      if (all_ns <= 0) continue;
      const bool own = key.backend().empty();
      if (own && key.selection() == proto::DEFAULT) {
        of_layer.default_ns = all_ns;
        default_config = result.config();
      }
      if (own && key.selection() == proto::TUNED) {
        of_layer.tuned_ns = all_ns;
        tuned_config = result.config();
      }
      if (of_layer.best_ns == 0 || all_ns < of_layer.best_ns) {
        of_layer.best_ns = all_ns;
        of_layer.best_backend =
            own ? tuning::DeviceName(key.device_kind()) : key.backend();
      }
    }
    // Two readings of one config differ by noise alone: no gain of tuning.
    if (!default_config.empty() && default_config == tuned_config) {
      const double mean_ns = std::sqrt(of_layer.default_ns * of_layer.tuned_ns);
      if (of_layer.best_ns ==
          std::min(of_layer.default_ns, of_layer.tuned_ns)) {
        of_layer.best_ns = mean_ns;
      }
      of_layer.default_ns = of_layer.tuned_ns = mean_ns;
    }
    time.layers.push_back(std::move(of_layer));
  }
  std::stable_sort(time.layers.begin(), time.layers.end(),
                   [](const LayerTime& a, const LayerTime& b) {
                     return a.best_ns > b.best_ns;
                   });
  return time;
}

std::vector<int> ThreadsOf(const proto::Run& run) {
  std::set<int> threads;
  for (const proto::BenchmarkResult& result : run.results()) {
    threads.insert(result.key().threads());
  }
  return {threads.begin(), threads.end()};
}

Table WorkloadTable(const WorkloadTime& time) {
  double total_ns = 0;
  for (const LayerTime& layer : time.layers) {
    if (layer.counts) total_ns += layer.best_ns;
  }
  Table table({{"operator"},
               {"shape"},
               {"calls", Align::kRight},
               {"default", Align::kRight, "default_ns"},
               {"tuned", Align::kRight, "tuned_ns"},
               {"best", Align::kRight, "best_ns"},
               {"by"},
               {"share", Align::kRight},
               {"gain", Align::kRight}});
  for (const LayerTime& layer : time.layers) {
    const bool share = layer.counts && layer.best_ns > 0;
    const bool gain = layer.default_ns > 0 && layer.best_ns > 0;
    const auto number = [](double ns) {
      return ns > 0 ? Cell::Number(ns, FormatDurationNs(ns)) : Cell::None();
    };
    table.AddRow(
        {layer.layer.operator_name(), layer.layer.shape(),
         Cell::Integer(std::max<int32_t>(layer.layer.count(), 1)),
         number(layer.default_ns), number(layer.tuned_ns),
         number(layer.best_ns), layer.best_backend,
         share ? Cell::Number(layer.best_ns / total_ns,
                              FormatPercent(layer.best_ns / total_ns))
               : Cell(layer.counts ? std::string()
                                   : absl::StrCat("(", layer.layer.part(), ", ",
                                                  layer.layer.way(), ")")),
         gain ? Cell::Number(
                    layer.default_ns / layer.best_ns,
                    absl::StrFormat("%.2fx", layer.default_ns / layer.best_ns))
              : Cell::None()});
  }
  return table;
}

std::string WorkloadSummary(const WorkloadTime& time) {
  double default_ns = 0, tuned_ns = 0, best_ns = 0;
  int counted = 0, measured = 0;
  std::map<std::string, std::vector<WayTime>> parts;
  std::string missing;
  for (const LayerTime& layer : time.layers) {
    if (!layer.layer.part().empty()) {
      std::vector<WayTime>& ways = parts[layer.layer.part()];
      auto way = std::find_if(
          ways.begin(), ways.end(),
          [&](const WayTime& known) { return known.way == layer.layer.way(); });
      if (way == ways.end()) {
        // What counts comes first.
        way = ways.insert(layer.counts ? ways.begin() : ways.end(),
                          {layer.layer.way()});
      }
      way->best_ns += layer.best_ns;
      way->complete &= layer.best_ns > 0;
    }
    if (!layer.counts) continue;
    ++counted;
    if (layer.default_ns <= 0) {
      absl::StrAppend(&missing, missing.empty() ? "" : ", ",
                      layer.layer.operator_name(), " ", layer.layer.shape());
      continue;
    }
    ++measured;
    default_ns += layer.default_ns;
    tuned_ns += layer.tuned_ns > 0 ? layer.tuned_ns : layer.default_ns;
    best_ns += layer.best_ns;
  }
  std::string text;
  if (measured > 0) {
    absl::StrAppendFormat(
        &text,
        "%s on %d thread%s, %d of %d layers: %s by default, %s tuned (%.2fx), "
        "%s by the best backends (%.2fx)\n",
        time.name, time.threads, time.threads == 1 ? "" : "s", measured,
        counted, FormatDurationNs(default_ns), FormatDurationNs(tuned_ns),
        default_ns / tuned_ns, FormatDurationNs(best_ns), default_ns / best_ns);
  }
  if (!missing.empty()) {
    absl::StrAppend(&text, "not measured: ", missing, "\n");
  }
  for (const auto& [part, ways] : parts) {
    for (size_t i = 1; i < ways.size(); ++i) {
      if (!ways[0].complete || !ways[i].complete) continue;
      absl::StrAppendFormat(&text, "%s: %s %s, %s %s (%.2fx)\n", part,
                            ways[0].way, TimeText(ways[0].best_ns), ways[i].way,
                            TimeText(ways[i].best_ns),
                            ways[i].best_ns / ways[0].best_ns);
    }
  }
  return text;
}

}  // namespace optrail::suites
