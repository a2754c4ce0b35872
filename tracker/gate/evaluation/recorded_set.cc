#include "tracker/gate/evaluation/recorded_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file/compression.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "tracker/history/history.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {
namespace {

// The first is the clock's: of medians, and of fastest readings.
using Loops = std::array<const char*, 5>;
constexpr Loops kMedians = {"arithmetic", "l1", "l2", "l3", "memory"};
constexpr Loops kFastest = {"vector", "l1", "l2", "l3", "memory"};

constexpr size_t kMaxBytes = size_t{64} << 20;

absl::StatusOr<double> Positive(absl::string_view text, absl::string_view path,
                                int line) {
  double value;
  if (absl::SimpleAtod(text, &value) && value > 0) return value;
  return absl::InvalidArgumentError(absl::StrCat(
      path, ":", line, ": '", text, "', expected a positive number"));
}

// Samples of which `contended` are left out and the others have that median and
// that minimum.
void AddSamples(double median, double fastest, double contended,
                proto::Measurement* measurement) {
  constexpr int kClean = 5, kCalls = 1000;
  const int bad =
      static_cast<int>(std::lround(kClean * contended / (1 - contended)));
  for (int i = 0; i < kClean + bad; ++i) {
    measurement->add_sample_ns(
        std::llround(kCalls * (i == 0 ? fastest : median)));
    if (i >= kClean) measurement->add_contended_samples(i);
  }
  measurement->set_calls_per_sample(kCalls);
}

// "43210/42900@arithmetic,l1,l2,l3,memory,contended", or "@fvector,..." of
// fastest loops.
absl::Status ReadProcess(absl::string_view text, absl::string_view path,
                         int line, proto::Measurement* measurement) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '@');
  const std::vector<absl::string_view> times = absl::StrSplit(parts[0], '/');
  OPTRAIL_ASSIGN_OR_RETURN(const double median, Positive(times[0], path, line));
  measurement->set_median_ns(median);
  double contended = 0;
  if (parts.size() > 1) {
    absl::string_view numbers = parts[1];
    const bool fastest = absl::ConsumePrefix(&numbers, "f");
    const Loops& names = fastest ? kFastest : kMedians;
    const std::vector<absl::string_view> loops = absl::StrSplit(numbers, ',');
    if (loops.size() != names.size() + 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", line, ": '", parts[1], "', expected ",
                       names.size() + 1, " numbers"));
    }
    if (!absl::SimpleAtod(loops.back(), &contended) || !(contended >= 0) ||
        contended >= 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", line, ": '", loops.back(),
                       "', expected a share of samples below 1"));
    }
    for (size_t k = 0; k < names.size(); ++k) {
      OPTRAIL_ASSIGN_OR_RETURN(const double time_ns,
                               Positive(loops[k], path, line));
      proto::Calibration* loop =
          measurement->mutable_conditions()->add_calibrations();
      loop->set_loop(names[k]);
      loop->set_time_ns(time_ns);
      if (fastest) loop->set_fastest_ns(time_ns);
    }
  }
  if (times.size() > 1) {
    OPTRAIL_ASSIGN_OR_RETURN(const double fastest,
                             Positive(times[1], path, line));
    AddSamples(median, fastest, contended, measurement);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RecordedSet> ReadRecordedSet(const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(std::string data, ReadFile(path));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text,
                           Decompress(std::move(data), path, kMaxBytes));
  RecordedSet set;
  set.name =
      std::string(WithoutCompressionSuffix(path.substr(path.rfind('/') + 1)));
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
    set.runs.resize(std::max(set.runs.size(), fields.size() - 1));
    for (size_t i = 1; i < fields.size(); ++i) {
      proto::BenchmarkResult* result = set.runs[i - 1].add_results();
      result->mutable_key()->set_operator_name(std::string(fields[0]));
      result->set_outcome(fields[i].empty() ? proto::CONTENDED : proto::OK);
      for (const absl::string_view process :
           absl::StrSplit(fields[i], ' ', absl::SkipEmpty())) {
        OPTRAIL_RETURN_IF_ERROR(
            ReadProcess(process, path, number, result->add_measurements()));
      }
    }
  }
  return set;
}

absl::Status ExportRecordedSet(const std::string& dir,
                               const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history, History::Open(dir));
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedRuns loaded, history.LoadRuns());
  std::map<std::string, std::vector<std::string>> lines;
  for (const proto::Run& run : loaded.runs) {
    for (const proto::BenchmarkResult& result : run.results()) {
      std::vector<std::string> values;
      for (const proto::Measurement& measurement : result.measurements()) {
        const auto reading = ReadingOf(measurement, "time");
        if (!reading) continue;
        const double contended =
            measurement.sample_ns_size() == 0
                ? 0
                : 1. * measurement.contended_samples_size() /
                      measurement.sample_ns_size();
        bool fastest = true;
        for (const auto& loop : measurement.conditions().calibrations()) {
          fastest = fastest && loop.has_fastest_ns();
        }
        const Loops& names = fastest ? kFastest : kMedians;
        std::vector<std::string> loops;
        for (const char* name : names) {
          for (const auto& loop : measurement.conditions().calibrations()) {
            if (loop.loop() != name) continue;
            loops.push_back(absl::StrFormat(
                "%.4g", fastest ? loop.fastest_ns() : loop.time_ns()));
          }
        }
        values.push_back(absl::StrCat(
            absl::StrFormat("%.5g/%.5g", reading->value, reading->fastest),
            loops.size() == names.size()
                ? absl::StrFormat("@%s%s,%.2f", fastest ? "f" : "",
                                  absl::StrJoin(loops, ","),
                                  std::min(.98, contended))
                : ""));
      }
      lines[DisplayName(result.key())].push_back(absl::StrJoin(values, " "));
    }
  }
  std::string text = "# benchmark, then process medians in ns of each run\n";
  for (const auto& [name, runs] : lines) {
    absl::StrAppend(&text, name, "\t", absl::StrJoin(runs, "\t"), "\n");
  }
  return WriteFileAtomically(path, text);
}

}  // namespace optrail::tracker
