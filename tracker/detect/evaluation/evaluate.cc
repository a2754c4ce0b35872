// Measures the detector on labelled series and prints the tables of
// docs/method/detection.md.
//
//   bazel run -c opt //tracker/detect/evaluation:evaluate --
//       --perf_series=perf_series.csv.gz --perf_labels=perf_labels.csv
//       --tcpd=DIR
//
// --perf_series: CSV id,t,value. --perf_labels: CSV id,kind,n,index,rel_change,
// one row per step, a row without index for a series without steps. --tcpd: a
// folder of the Turing Change Point Dataset's JSON files and annotations.json.
// --synthetic: needs no data; the power and false-alarm curves.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tracker/detect/csv.h"
#include "tracker/detect/detect.h"
#include "tracker/detect/evaluation/score.h"
#include "tracker/detect/evaluation/synthetic.h"
#include "tracker/detect/online.h"

ABSL_FLAG(std::string, perf_series, "", "CSV of series; may be gzipped");
ABSL_FLAG(std::string, perf_labels, "", "CSV of their labels");
ABSL_FLAG(std::string, tcpd, "", "folder of the Turing dataset");
ABSL_FLAG(int, synthetic, 0,
          "series per kind of noise and size of step, for the power curves");
ABSL_FLAG(bool, verbose, false, "one line per Turing series");
ABSL_FLAG(double, alert_effect, 0.03,
          "a confirmed change beyond this relative size is an alert");

namespace optrail::tracker {
namespace {

struct Labelled {
  std::string kind;
  std::vector<int> labels;
  std::vector<double> values;
};

// Of this process, so that other work on the machine doesn't count.
double CpuMilliseconds() { return 1e3 * std::clock() / CLOCKS_PER_SEC; }

absl::StatusOr<std::vector<Labelled>> ReadLabelled(
    const std::string& series_path, const std::string& labels_path) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<CsvSeries> series,
                           ReadSeriesCsv(series_path));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(labels_path));
  std::map<std::string, Labelled> by_id;
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
    if (line.empty() || line_number == 1) continue;
    int index = 0;
    if (fields.size() < 4 ||
        (!fields[3].empty() && !absl::SimpleAtoi(fields[3], &index))) {
      return absl::InvalidArgumentError(absl::StrCat(
          labels_path, ":", line_number, ": expected id,kind,n,index,..."));
    }
    Labelled& one = by_id[std::string(fields[0])];
    one.kind = std::string(fields[1]);
    if (!fields[3].empty()) one.labels.push_back(index);
  }
  std::vector<Labelled> all;
  for (CsvSeries& one : series) {
    const auto found = by_id.find(one.id);
    if (found == by_id.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(labels_path, ": no labels for series ", one.id));
    }
    found->second.values = std::move(one.values);
    all.push_back(std::move(found->second));
  }
  return all;
}

std::vector<int> Indices(const std::vector<ChangePoint>& changes) {
  std::vector<int> indices;
  for (const ChangePoint& change : changes) indices.push_back(change.index);
  return indices;
}

struct OfflineTally {
  int hits = 0, predicted = 0, labels = 0, false_in_quiet = 0;
  double quiet_points = 0;
};

void PrintOffline(const std::vector<Labelled>& all) {
  std::map<std::string, OfflineTally> tallies;
  double points = 0;
  const double start_ms = CpuMilliseconds();
  std::vector<std::vector<int>> predictions;
  for (const Labelled& one : all) {
    predictions.push_back(Indices(DetectOffline(one.values)));
    points += one.values.size();
  }
  const double ms = (CpuMilliseconds() - start_ms);
  for (size_t i = 0; i < all.size(); ++i) {
    const Labelled& one = all[i];
    const int hits = TruePositives(one.labels, predictions[i]);
    for (const std::string& key : {one.kind, std::string("pooled")}) {
      OfflineTally& tally = tallies[key];
      tally.hits += hits;
      tally.predicted += predictions[i].size();
      tally.labels += one.labels.size();
      if (one.labels.empty()) {
        tally.false_in_quiet += predictions[i].size();
        tally.quiet_points += one.values.size();
      }
    }
  }
  std::cout << "offline, margin " << kScoreMargin << ", "
            << absl::StrFormat("%.3f", 1e3 * ms / points)
            << " ms of CPU time per 1000 points\n"
            << "kind        precision  recall     F1  false per 1000 quiet\n";
  for (const auto& [kind, tally] : tallies) {
    const auto ratio = [](double a, double b) { return b > 0 ? a / b : 1; };
    std::cout << absl::StrFormat(
        "%-12s %8.3f %7.3f %6.3f %21.3f\n", kind,
        ratio(tally.hits, tally.predicted), ratio(tally.hits, tally.labels),
        ratio(2 * tally.hits, tally.predicted + tally.labels),
        ratio(1e3 * tally.false_in_quiet, std::max(1.0, tally.quiet_points)));
  }
}

constexpr int kNever = 1 << 30;

struct OnlineTally {
  double points = 0;
  int labels = 0;
  int false_marks = 0, false_confirmed = 0, false_alerts = 0, flipped = 0;
  // One per label; kNever if not found.
  std::vector<int> mark_delays, confirm_delays;
};

std::string Median(std::vector<int> delays) {
  if (delays.empty()) return "-";
  std::sort(delays.begin(), delays.end());
  const int median = delays[delays.size() / 2];
  return median == kNever ? "-" : absl::StrCat(median);
}

// Points are revealed one by one. A label's delay is how many points after the
// change's first a mark or a confirmed change within the margin appears.
void FoldOne(const Labelled& one, OnlineTally& tally, double alert_effect) {
  OnlineDetector detector;
  std::vector<int> mark_delays(one.labels.size(), kNever);
  std::vector<int> confirm_delays(one.labels.size(), kNever);
  const auto match = [&one](int index, int now, std::vector<int>& delays) {
    bool any = false;
    for (size_t k = 0; k < one.labels.size(); ++k) {
      if (std::abs(one.labels[k] - index) > kScoreMargin) continue;
      any = true;
      delays[k] = std::min(delays[k], std::max(0, now - one.labels[k]));
    }
    return any;
  };
  std::vector<ChangePoint> before;
  for (int now = 0; now < static_cast<int>(one.values.size()); ++now) {
    const OnlineUpdate update = detector.Append(one.values[now]);
    if (update.marked &&
        !match(detector.provisional()->index, now, mark_delays)) {
      ++tally.false_marks;
    }
    for (const ChangePoint& change : update.confirmed) {
      match(change.index, now, mark_delays);
      if (match(change.index, now, confirm_delays)) continue;
      ++tally.false_confirmed;
      if (std::abs(change.relative_change) > alert_effect) {
        ++tally.false_alerts;
      }
    }
    for (size_t k = 0; k < before.size(); ++k) {
      if (k >= detector.confirmed().size() ||
          detector.confirmed()[k].index != before[k].index) {
        ++tally.flipped;
      }
    }
    if (!update.confirmed.empty()) before = detector.confirmed();
  }
  tally.points += one.values.size();
  tally.labels += one.labels.size();
  for (size_t k = 0; k < one.labels.size(); ++k) {
    tally.mark_delays.push_back(mark_delays[k]);
    tally.confirm_delays.push_back(confirm_delays[k]);
  }
}

void PrintOnline(const std::vector<Labelled>& all, double alert_effect) {
  std::map<std::string, OnlineTally> tallies;
  double points = 0;
  const double start_ms = CpuMilliseconds();
  for (const Labelled& one : all) {
    DetectOnline(one.values);
    points += one.values.size();
  }
  const double us = 1e3 * (CpuMilliseconds() - start_ms) / points;
  for (const Labelled& one : all) {
    FoldOne(one, tallies[one.kind], alert_effect);
    FoldOne(one, tallies["pooled"], alert_effect);
  }
  std::cout << "\nonline, " << absl::StrFormat("%.1f", us)
            << " us of CPU time per point; per 1000 points: false marks, false "
               "confirmed "
               "changes, false alerts\n"
            << "kind         delay  found   marks  confirmed  alerts  "
               "flipped\n";
  for (const auto& [kind, tally] : tallies) {
    const int confirmed =
        tally.labels -
        static_cast<int>(std::count(tally.confirm_delays.begin(),
                                    tally.confirm_delays.end(), kNever));
    std::cout << absl::StrFormat(
        "%-12s %5s %6.3f %7.2f %10.3f %7.4f %8d\n", kind,
        Median(tally.mark_delays),
        tally.labels > 0 ? 1.0 * confirmed / tally.labels : 1,
        1e3 * tally.false_marks / tally.points,
        1e3 * tally.false_confirmed / tally.points,
        1e3 * tally.false_alerts / tally.points, tally.flipped);
  }
}

absl::Status PrintTcpd(const std::string& dir, bool verbose) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string annotations_text,
                           ReadFile(JoinPath(dir, "annotations.json")));
  const nlohmann::json annotations = nlohmann::json::parse(
      annotations_text, nullptr, /*allow_exceptions=*/false);
  if (!annotations.is_object()) {
    return absl::InvalidArgumentError(dir + "/annotations.json: not an object");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           ListDirectory(dir));
  double f1 = 0, covering = 0, f1_of_nothing = 0, covering_of_nothing = 0;
  int count = 0;
  for (const std::string& name : names) {
    const std::string path = JoinPath(dir, name);
    if (name == "annotations.json" || path.size() < 5 ||
        path.substr(path.size() - 5) != ".json") {
      continue;
    }
    OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    const nlohmann::json data =
        nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!data.is_object() || !data.contains("name") ||
        !data.contains("series") || data["series"].size() != 1 ||
        !annotations.contains(data["name"].get<std::string>())) {
      return absl::InvalidArgumentError(
          path + ": expected name, one series, and annotations for it");
    }
    const std::string id = data["name"];
    std::vector<std::vector<int>> annotators;
    for (const auto& [annotator, labels] : annotations[id].items()) {
      annotators.push_back(labels.get<std::vector<int>>());
    }
    std::vector<double> values;
    for (const nlohmann::json& value : data["series"][0]["raw"]) {
      values.push_back(value.is_number() ? value.get<double>() : NAN);
    }
    const int n = static_cast<int>(values.size());
    const std::vector<int> predicted = Indices(DetectOffline(values));
    const double one_f1 = F1(annotators, predicted);
    const double one_covering = Covering(annotators, predicted, n);
    f1 += one_f1;
    covering += one_covering;
    f1_of_nothing += F1(annotators, {});
    covering_of_nothing += Covering(annotators, {}, n);
    ++count;
    if (verbose) {
      std::cout << absl::StrFormat("  %-22s %4d  F1 %.3f  covering %.3f\n", id,
                                   n, one_f1, one_covering);
    }
  }
  if (count == 0) return absl::InvalidArgumentError(dir + ": no series");
  std::cout << absl::StrFormat(
      "\nTuring dataset, %d series: F1 %.3f  covering %.3f  (reporting "
      "nothing: %.3f  %.3f)\n",
      count, f1 / count, covering / count, f1_of_nothing / count,
      covering_of_nothing / count);
  return absl::OkStatus();
}

constexpr int kPowerPoints = 200, kPowerStep = 100;
constexpr double kPowerEffects[] = {.01, .02, .03, .05, .10, .20};

// One step in the middle of 200 points: how often it is found within the
// margin, by kind of noise and size of the step; and what is found where there
// is none.
void PrintPower(int series_per_cell) {
  for (const bool online : {false, true}) {
    std::cout << "\n"
              << (online ? "online, confirmed" : "offline")
              << ": share of steps found; changes found per 1000 points "
                 "without a step\nkind            ";
    for (const double effect : kPowerEffects) {
      std::cout << absl::StrFormat("%5.0f%%", 100 * effect);
    }
    std::cout << "   false\n";
    for (const NoiseKind kind : kAllNoiseKinds) {
      const auto found = [&](double effect, uint64_t seed) {
        std::vector<Step> steps;
        if (effect > 0) steps.push_back({kPowerStep, 1 + effect});
        const std::vector<double> values =
            SyntheticSeries(kind, kPowerPoints, steps, seed);
        return Indices(online ? DetectOnline(values).confirmed
                              : DetectOffline(values));
      };
      std::cout << absl::StrFormat("%-16s", Name(kind));
      for (const double effect : kPowerEffects) {
        int hits = 0;
        for (int i = 0; i < series_per_cell; ++i) {
          hits += TruePositives({kPowerStep}, found(effect, 1000 + i));
        }
        std::cout << absl::StrFormat("%6.2f", 1. * hits / series_per_cell);
      }
      size_t false_changes = 0;
      for (int i = 0; i < 10 * series_per_cell; ++i) {
        false_changes += found(0, 100000 + i).size();
      }
      std::cout << absl::StrFormat(
          "  %6.3f\n",
          1e3 * false_changes / (10. * series_per_cell * kPowerPoints));
    }
  }
}

// The same steps: how many points pass before half of them are marked and
// before half of them are confirmed.
void PrintDelays(int series_per_cell) {
  std::cout << "\nonline: median delay of the mark / of the confirmation, in "
               "points\nkind            ";
  for (const double effect : kPowerEffects) {
    std::cout << absl::StrFormat("%8.0f%%", 100 * effect);
  }
  std::cout << "\n";
  for (const NoiseKind kind : kAllNoiseKinds) {
    std::cout << absl::StrFormat("%-16s", Name(kind));
    for (const double effect : kPowerEffects) {
      OnlineTally tally;
      for (int i = 0; i < series_per_cell; ++i) {
        FoldOne({Name(kind),
                 {kPowerStep},
                 SyntheticSeries(kind, kPowerPoints, {{kPowerStep, 1 + effect}},
                                 1000 + i)},
                tally, 0);
      }
      std::cout << absl::StrFormat("%9s",
                                   absl::StrCat(Median(tally.mark_delays), "/",
                                                Median(tally.confirm_delays)));
    }
    std::cout << "\n";
  }
}

absl::Status Main() {
  if (const int series = absl::GetFlag(FLAGS_synthetic); series > 0) {
    PrintPower(series);
    PrintDelays(series);
  }
  if (!absl::GetFlag(FLAGS_perf_series).empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Labelled> all,
                             ReadLabelled(absl::GetFlag(FLAGS_perf_series),
                                          absl::GetFlag(FLAGS_perf_labels)));
    PrintOffline(all);
    PrintOnline(all, absl::GetFlag(FLAGS_alert_effect));
  }
  if (!absl::GetFlag(FLAGS_tcpd).empty()) {
    return PrintTcpd(absl::GetFlag(FLAGS_tcpd), absl::GetFlag(FLAGS_verbose));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace optrail::tracker

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Measures change-point detection on labelled series.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = optrail::tracker::Main();
  if (!status.ok()) {
    std::cerr << "evaluate: " << status.message() << "\n";
    return 2;
  }
  return 0;
}
