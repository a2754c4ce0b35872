#include "tracker/workload/workload_time.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/stats/statistics.h"
#include "base/text/prose.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
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

int CallsOf(const proto::WorkloadLayer& layer) {
  return std::max<int32_t>(layer.count(), 1);
}

// The time of all calls of the layer, by backend.
using LibraryTimes = std::map<std::string, LibraryTime>;

LayerTime TimeOfLayer(const proto::WorkloadLayer& layer, const proto::Run& run,
                      int threads, LibraryTimes* libraries) {
  LayerTime time;
  time.layer = layer;
  std::string default_config, tuned_config, other_backend;
  double own_ns = 0, other_ns = 0;  // the best of each
  for (const proto::BenchmarkResult& result : run.results()) {
    const proto::BenchmarkKey& key = result.key();
    if (result.outcome() != proto::OK || key.threads() != threads ||
        key.operator_name() != layer.operator_name() ||
        tuning::CanonicalText(key.shape()) != layer.shape()) {
      continue;
    }
    const double all_ns = MedianNs(result) * CallsOf(layer);
    if (all_ns <= 0) continue;
    const bool own = key.backend().empty();
    // What is faster than its roofline is its own limit.
    const double limit_ns = all_ns * std::min(1.0, result.roofline_fraction());
    if (time.limit_ns == 0 || (limit_ns > 0 && limit_ns < time.limit_ns)) {
      time.limit_ns = limit_ns;
    }
    if (!own && !result.library().empty()) {
      LibraryTime& library = (*libraries)[key.backend()];
      if (library.layers == 0 || all_ns < library.time_ns) {
        library.backend = key.backend();
        library.library = result.library();
        library.layers = 1;
        library.time_ns = all_ns;
      }
    }
    if (own && key.selection() == proto::DEFAULT) {
      time.default_ns = all_ns;
      default_config = result.config();
    }
    if (own && key.selection() == proto::TUNED) {
      time.tuned_ns = all_ns;
      tuned_config = result.config();
    }
    if (own && (own_ns == 0 || all_ns < own_ns)) {
      own_ns = all_ns;
      time.best_backend = tuning::DeviceName(key.device_kind());
    }
    if (!own && (other_ns == 0 || all_ns < other_ns)) {
      other_ns = all_ns;
      other_backend = key.backend();
    }
  }
  // Two readings of one config differ by noise alone: no gain of tuning.
  if (!default_config.empty() && default_config == tuned_config) {
    const double mean_ns = std::sqrt(time.default_ns * time.tuned_ns);
    if (own_ns == std::min(time.default_ns, time.tuned_ns)) own_ns = mean_ns;
    time.default_ns = time.tuned_ns = mean_ns;
  }
  time.best_ns = own_ns;
  if (other_ns > 0 && (own_ns == 0 || other_ns < own_ns)) {
    time.best_ns = other_ns;
    time.best_backend = other_backend;
  }
  time.limit_ns = std::min(time.limit_ns, time.best_ns);
  return time;
}

// A layer that counts and was measured.
struct MeasuredLayer {
  std::string name;
  double ours_ns = 0;
  LibraryTimes libraries;
};

std::vector<LibraryTime> TotalsOf(std::vector<MeasuredLayer> layers) {
  std::stable_sort(layers.begin(), layers.end(),
                   [](const MeasuredLayer& a, const MeasuredLayer& b) {
                     return a.ours_ns > b.ours_ns;
                   });
  LibraryTimes totals;
  for (const MeasuredLayer& layer : layers) {
    for (const auto& [backend, library] : layer.libraries) {
      totals[backend].library = library.library;
    }
  }
  std::vector<LibraryTime> sorted;
  for (auto& [backend, total] : totals) {
    total.backend = backend;
    for (const MeasuredLayer& layer : layers) {
      const auto found = layer.libraries.find(backend);
      if (found == layer.libraries.end()) {
        total.time_ns += layer.ours_ns;
        total.ours_ns += layer.ours_ns;
        total.holes.push_back(layer.name);
      } else {
        total.time_ns += found->second.time_ns;
        ++total.layers;
      }
    }
    sorted.push_back(total);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const LibraryTime& a, const LibraryTime& b) {
              return a.time_ns < b.time_ns;
            });
  return sorted;
}

// What a library is beside us: its total, and where that has holes, those and
// what is its own.
std::string LibrarySummary(const LibraryTime& library, double tuned_ns) {
  constexpr size_t kNamed = 3;
  std::string text = absl::StrFormat(
      "%s: %s (%.2f of our time)", library.library,
      FormatDurationNs(library.time_ns), library.time_ns / tuned_ns);
  if (library.holes.empty()) return absl::StrCat(text, "\n");
  absl::StrAppendFormat(
      &text, ", with holes: %d of %d layers its own (%.2f), %s ours, of %s",
      library.layers, library.layers + library.holes.size(),
      (library.time_ns - library.ours_ns) / (tuned_ns - library.ours_ns),
      FormatDurationNs(library.ours_ns),
      EscapeForTerminal(JoinFirst(library.holes, kNamed)));
  return absl::StrCat(text, "\n");
}

std::vector<PartTime> PartsOf(const std::vector<LayerTime>& layers) {
  std::map<std::string, PartTime> parts;
  std::set<std::pair<std::string, std::string>> incomplete;  // part, way
  for (const LayerTime& layer : layers) {
    const std::string& name = layer.layer.part();
    if (name.empty()) continue;
    PartTime& part = parts[name];
    part.part = name;
    auto way = std::find_if(part.ways.begin(), part.ways.end(),
                            [&](const PartTime::Way& known) {
                              return known.way == layer.layer.way();
                            });
    if (way == part.ways.end()) {
      way = part.ways.insert(layer.counts ? part.ways.begin() : part.ways.end(),
                             {layer.layer.way(), 0});
    }
    way->best_ns += layer.best_ns;
    if (layer.best_ns <= 0) incomplete.emplace(name, layer.layer.way());
  }
  std::vector<PartTime> whole;
  for (auto& [name, part] : parts) {
    if (incomplete.count({name, part.ways[0].way}) != 0) continue;
    part.ways.erase(
        std::remove_if(part.ways.begin(), part.ways.end(),
                       [&](const PartTime::Way& way) {
                         return incomplete.count({part.part, way.way}) != 0;
                       }),
        part.ways.end());
    if (part.ways.size() > 1) whole.push_back(std::move(part));
  }
  return whole;
}

WorkloadTime TimeOn(const proto::Run& run, int threads) {
  WorkloadTime time;
  time.name = run.workload();
  time.threads = threads;
  const std::vector<bool> counts = LayersThatCount(run);
  double counted_ns = 0;
  std::vector<MeasuredLayer> measured;
  bool limits_known = true;
  for (int i = 0; i < run.workload_layers_size(); ++i) {
    const proto::WorkloadLayer& layer = run.workload_layers(i);
    LibraryTimes of_libraries;
    LayerTime of_layer = TimeOfLayer(layer, run, threads, &of_libraries);
    of_layer.counts = counts[i];
    if (of_layer.counts) {
      ++time.counted;
      counted_ns += of_layer.best_ns;
      if (of_layer.default_ns > 0) {
        ++time.measured;
        if (of_layer.tuned_ns > 0) ++time.tuned;
        measured.push_back(
            {LayerName(layer),
             of_layer.tuned_ns > 0 ? of_layer.tuned_ns : of_layer.default_ns,
             std::move(of_libraries)});
        time.default_ns += of_layer.default_ns;
        time.tuned_ns += measured.back().ours_ns;
        time.best_ns += of_layer.best_ns;
        time.limit_ns += of_layer.limit_ns;
        limits_known = limits_known && of_layer.limit_ns > 0;
      } else {
        time.missing.push_back(LayerName(layer));
      }
    }
    time.layers.push_back(std::move(of_layer));
  }
  for (LayerTime& layer : time.layers) {
    if (layer.counts && counted_ns > 0)
      layer.share = layer.best_ns / counted_ns;
  }
  std::stable_sort(time.layers.begin(), time.layers.end(),
                   [](const LayerTime& a, const LayerTime& b) {
                     return a.best_ns > b.best_ns;
                   });
  if (!limits_known) time.limit_ns = 0;
  time.libraries = TotalsOf(std::move(measured));
  time.parts = PartsOf(time.layers);
  return time;
}

}  // namespace

std::string LayerName(const proto::WorkloadLayer& layer) {
  return absl::StrCat(layer.operator_name(), " ", layer.shape());
}

std::vector<bool> LayersThatCount(const proto::Run& run) {
  std::map<std::string, std::string> first_way;  // by part
  std::vector<bool> counts;
  for (const proto::WorkloadLayer& layer : run.workload_layers()) {
    const auto first = first_way.emplace(layer.part(), layer.way()).first;
    counts.push_back(layer.part().empty() || first->second == layer.way());
  }
  return counts;
}

std::vector<WorkloadTime> WorkloadTimes(const proto::Run& run) {
  if (run.workload_layers().empty()) return {};
  std::set<int> threads;
  for (const proto::BenchmarkResult& result : run.results()) {
    threads.insert(result.key().threads());
  }
  std::vector<WorkloadTime> times;
  for (const int count : threads) times.push_back(TimeOn(run, count));
  return times;
}

Table WorkloadTable(const WorkloadTime& time) {
  Table table({{"layer", Align::kLeft, "", Clip::kFold},
               {"calls", Align::kRight},
               {"default", Align::kRight, "default_ns"},
               {"tuned", Align::kRight, "tuned_ns"},
               {"best", Align::kRight, "best_ns"},
               {"by"},
               {"limit", Align::kRight, "limit_ns"},
               {"share", Align::kRight},
               {"gain", Align::kRight}});
  for (const LayerTime& layer : time.layers) {
    if (layer.best_ns <= 0) continue;  // the summary names it
    const bool gain = layer.default_ns > 0 && layer.best_ns > 0;
    const auto number = [](double ns) {
      return ns > 0 ? Cell::Number(ns, FormatDurationNs(ns)) : Cell::None();
    };
    table.AddRow(
        {LayerName(layer.layer), Cell::Integer(CallsOf(layer.layer)),
         number(layer.default_ns), number(layer.tuned_ns),
         number(layer.best_ns), layer.best_backend, number(layer.limit_ns),
         layer.counts ? Cell::Number(layer.share, FormatPercent(layer.share))
                      : Cell(absl::StrCat("(", layer.layer.part(), ", ",
                                          layer.layer.way(), ")")),
         gain ? Cell::Number(
                    layer.default_ns / layer.best_ns,
                    absl::StrFormat("%.2fx", layer.default_ns / layer.best_ns))
              : Cell::None()});
  }
  return table;
}

std::string WorkloadSummary(const WorkloadTime& time) {
  std::string text;
  if (time.measured > 0) {
    absl::StrAppendFormat(&text,
                          "%s on %d thread%s, %d of %d layers: %s by default",
                          EscapeForTerminal(time.name), time.threads,
                          time.threads == 1 ? "" : "s", time.measured,
                          time.counted, FormatDurationNs(time.default_ns));
    if (time.tuned > 0) {
      absl::StrAppendFormat(
          &text, ", %s tuned%s (%.2fx)", FormatDurationNs(time.tuned_ns),
          time.tuned < time.measured
              ? absl::StrCat(" where it was, in ", time.tuned, " of them")
              : "",
          time.default_ns / time.tuned_ns);
    }
    absl::StrAppendFormat(&text, ", %s by the best backends (%.2fx)\n",
                          FormatDurationNs(time.best_ns),
                          time.default_ns / time.best_ns);
    if (time.limit_ns > 0) {
      absl::StrAppendFormat(
          &text, "limit: %s by this machine's ceilings (%.2fx)\n",
          FormatDurationNs(time.limit_ns), time.default_ns / time.limit_ns);
    }
    for (const LibraryTime& library : time.libraries) {
      absl::StrAppend(&text, LibrarySummary(library, time.tuned_ns));
    }
  }
  if (!time.missing.empty()) {
    constexpr size_t kNamed = 3;
    absl::StrAppend(&text, "not measured: ",
                    EscapeForTerminal(JoinFirst(time.missing, kNamed)), "\n");
  }
  for (const PartTime& part : time.parts) {
    for (size_t i = 1; i < part.ways.size(); ++i) {
      absl::StrAppendFormat(&text, "%s: %s %s, %s %s (%.2fx)\n",
                            EscapeForTerminal(part.part),
                            EscapeForTerminal(part.ways[0].way),
                            FormatDurationNs(part.ways[0].best_ns),
                            EscapeForTerminal(part.ways[i].way),
                            FormatDurationNs(part.ways[i].best_ns),
                            part.ways[i].best_ns / part.ways[0].best_ns);
    }
  }
  return text;
}

}  // namespace optrail::tracker
