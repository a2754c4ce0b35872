#include "suites/bench/google_benchmark_face.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "base/file/file_system.h"
#include "base/process/git.h"
#include "base/stats/statistics.h"
#include "base/text/closest.h"
#include "benchmark/benchmark.h"
#include "re2/re2.h"
#include "suites/bench/summary_rows.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/meter_window.h"

ABSL_FLAG(std::string, benchmark_filter, "",
          "Run only benchmarks whose name this regular expression matches "
          "somewhere; \"-REGEX\" runs the others.");
ABSL_FLAG(bool, benchmark_list_tests, false,
          "Print the names of the benchmarks instead of running them.");
ABSL_FLAG(double, benchmark_min_time, 0,
          "Least time of sampling per process, in seconds; 0 samples until "
          "the median is known to 1% or 0.2 s have passed.");
ABSL_FLAG(int32_t, benchmark_repetitions, 0,
          "Fresh processes per benchmark, each shown on a line of its own "
          "beside their mean, median, stddev and cv; 0 takes --processes and "
          "shows the median.");
ABSL_FLAG(bool, benchmark_enable_random_interleaving, false,
          "Run the benchmarks of each round in random order.");
ABSL_FLAG(
    bool, benchmark_report_aggregates_only, false,
    "Report only mean, median, stddev and cv over processes, everywhere.");
ABSL_FLAG(bool, benchmark_display_aggregates_only, false,
          "The same for the console; the file still holds every process.");
ABSL_FLAG(std::string, benchmark_format, "console",
          "What to print: console, json or csv.");
ABSL_FLAG(std::string, benchmark_out, "", "Also write the results to a file.");
ABSL_FLAG(std::string, benchmark_out_format, "json",
          "Format of that file: console, json or csv.");
ABSL_FLAG(std::string, benchmark_color, "auto",
          "Colours on the console: auto, true or false.");
ABSL_FLAG(bool, benchmark_counters_tabular, true,
          "Print counters as columns of the console's table.");
ABSL_FLAG(std::string, benchmark_context, "",
          "key=value,... added to the context in JSON.");
ABSL_FLAG(std::string, benchmark_time_unit, "",
          "Unit of times: ns, us, ms or s; by default each benchmark's own.");
ABSL_FLAG(std::string, benchmark_perf_counters, "",
          "Refused: hardware counters are not read by the worker processes.");
ABSL_FLAG(int32_t, v, 0, "Verbosity; accepted and without effect.");

namespace optrail::suites {
namespace {

using benchmark::BenchmarkReporter;
using GbRun = BenchmarkReporter::Run;

benchmark::TimeUnit UnitFor(double time_ns) {
  const std::string forced = absl::GetFlag(FLAGS_benchmark_time_unit);
  if (forced == "s" || (forced.empty() && time_ns >= 1e10)) {
    return benchmark::kSecond;
  }
  if (forced == "ms" || (forced.empty() && time_ns >= 1e7)) {
    return benchmark::kMillisecond;
  }
  if (forced == "us" || (forced.empty() && time_ns >= 1e4)) {
    return benchmark::kMicrosecond;
  }
  return benchmark::kNanosecond;
}

double CpuTimeNs(const proto::Measurement& measurement) {
  for (const proto::MetricSamples& metric : measurement.metrics()) {
    if (metric.metric() == "cpu_time") return Median(metric.values());
  }
  return 0;
}

// One line shows a process, or an aggregate over processes.
struct Line {
  double time_ns = 0;
  double cpu_time_ns = 0;
  int64_t calls = 1;
  std::string aggregate;  // empty: a process
  bool is_ratio = false;  // cv
};

class RunBuilder {
 public:
  RunBuilder(const proto::BenchmarkResult& result, int family)
      : result_(result), family_(family) {
    for (const proto::Measurement& measurement : result.measurements()) {
      if (!measurement.has_median_ns()) continue;
      times_ns_.push_back(measurement.median_ns());
      cpu_times_ns_.push_back(CpuTimeNs(measurement));
      calls_.push_back(measurement.calls_per_sample() *
                       measurement.sample_ns_size());
    }
  }

  // One line: the median over processes, or why there is none.
  std::vector<GbRun> Summary(const std::string& label) const {
    if (result_.outcome() != proto::OK) return {Failure()};
    Line line;
    line.time_ns = Median(times_ns_);
    line.cpu_time_ns = Median(cpu_times_ns_);
    line.calls = std::accumulate(calls_.begin(), calls_.end(), int64_t{0});
    GbRun run = Build(line, 0, 0);
    // A terminal is narrow; JSON has the rest.
    run.counters.erase("bytes/s");
    if (!label.empty()) {
      absl::StrAppend(&run.report_label, run.report_label.empty() ? "" : ", ",
                      label);
    }
    if (times_ns_.size() > 1) {
      run.counters["cv_pct"] =
          100 * StandardDeviation(times_ns_) / Mean(times_ns_);
    }
    return {run};
  }

  std::vector<GbRun> Processes() const {
    if (result_.outcome() != proto::OK) return {Failure()};
    std::vector<GbRun> runs;
    for (size_t i = 0; i < times_ns_.size(); ++i) {
      runs.push_back(Build({times_ns_[i], cpu_times_ns_[i], calls_[i], "",
                            /*is_ratio=*/false},
                           static_cast<int>(i),
                           static_cast<int>(times_ns_.size())));
    }
    return runs;
  }

  std::vector<GbRun> Aggregates() const {
    std::vector<GbRun> runs;
    if (result_.outcome() != proto::OK || times_ns_.size() < 2) return runs;
    const auto add = [&](const std::string& name, double time_ns,
                         double cpu_time_ns, bool is_ratio) {
      runs.push_back(Build({time_ns, cpu_time_ns, 1, name, is_ratio}, -1,
                           static_cast<int>(times_ns_.size())));
    };
    const double spread = StandardDeviation(times_ns_);
    const double cpu_spread = StandardDeviation(cpu_times_ns_);
    add("mean", Mean(times_ns_), Mean(cpu_times_ns_), false);
    add("median", Median(times_ns_), Median(cpu_times_ns_), false);
    add("stddev", spread, cpu_spread, false);
    const double cpu_mean = Mean(cpu_times_ns_);
    add("cv", spread / Mean(times_ns_),
        cpu_mean > 0 ? cpu_spread / cpu_mean : 0, true);
    return runs;
  }

 private:
  GbRun Named() const {
    GbRun run;
    run.run_name.function_name = BenchmarkNameOf(result_);
    run.family_index = family_;
    run.per_family_instance_index = 0;
    run.threads = std::max(1, result_.key().threads());
    run.repetition_index = 0;
    run.repetitions = 1;
    run.statistics = nullptr;
    // The name says "best" whichever it is, so that its series goes on.
    if (!result_.resolved_backend().empty()) {
      run.report_label = absl::StrCat("by ", result_.resolved_backend());
    }
    return run;
  }

  GbRun Failure() const {
    GbRun run = Named();
    run.error_occurred = true;
    run.error_message = absl::StrCat(proto::Outcome_Name(result_.outcome()),
                                     ": ", result_.detail());
    return run;
  }

  GbRun Build(const Line& line, int index, int repetitions) const {
    GbRun run = Named();
    run.iterations = line.calls;
    run.repetition_index = index;
    run.repetitions = repetitions;
    run.time_unit = UnitFor(Median(times_ns_));
    // Reporters divide by iterations and scale seconds to the unit; ratios
    // they only divide.
    const double scale =
        static_cast<double>(line.calls) * (line.is_ratio ? 1 : 1e-9);
    run.real_accumulated_time = line.time_ns * scale;
    run.cpu_accumulated_time = line.cpu_time_ns * scale;
    if (!line.aggregate.empty()) {
      run.run_type = GbRun::RT_Aggregate;
      run.aggregate_name = line.aggregate;
      run.aggregate_unit =
          line.is_ratio ? benchmark::kPercentage : benchmark::kTime;
    }
    const bool is_location = line.aggregate.empty() ||
                             line.aggregate == "mean" ||
                             line.aggregate == "median";
    if (is_location && line.time_ns > 0) {
      if (result_.flop() > 0) {
        run.counters["FLOP/s"] = result_.flop() / line.time_ns * 1e9;
      }
      if (result_.moved_bytes() > 0) {
        run.counters["bytes/s"] = result_.moved_bytes() / line.time_ns * 1e9;
      }
      AddMetered(index, &run);
      if (result_.has_roofline_fraction() &&
          tracker::IsBoundByRoofline(result_.roofline_fraction())) {
        run.counters["roofline_pct"] = 100 * result_.roofline_fraction() *
                                       Median(times_ns_) / line.time_ns;
      }
    }
    return run;
  }

  // What meters read of a call: of process `index`, or the median of all.
  void AddMetered(int index, GbRun* run) const {
    std::map<std::string, std::vector<double>> read;
    int process = 0;
    for (const proto::Measurement& measurement : result_.measurements()) {
      if (!measurement.has_median_ns()) continue;
      const bool counts =
          run->repetitions == 0 || index < 0 || index == process;
      ++process;
      if (!counts) continue;
      for (const auto& metered : tuning::MeteredMetrics(measurement)) {
        read[metered.estimated ? metered.metric + "_estimated" : metered.metric]
            .push_back(Median(metered.per_call));
      }
    }
    for (const auto& [metric, values] : read) {
      run->counters[metric] = Median(values);
    }
  }

  const proto::BenchmarkResult& result_;
  const int family_;
  std::vector<double> times_ns_;
  std::vector<double> cpu_times_ns_;
  std::vector<int64_t> calls_;
};

enum class Detail { kSummary, kAll, kAggregatesOnly };

std::unique_ptr<BenchmarkReporter> MakeReporter(const std::string& format,
                                                bool color) {
  if (format == "json") return std::make_unique<benchmark::JSONReporter>();
  if (format == "csv") {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return std::make_unique<benchmark::CSVReporter>();
#pragma GCC diagnostic pop
  }
  int options = benchmark::ConsoleReporter::OO_None;
  if (color) options |= benchmark::ConsoleReporter::OO_Color;
  if (absl::GetFlag(FLAGS_benchmark_counters_tabular)) {
    options |= benchmark::ConsoleReporter::OO_Tabular;
  }
  return std::make_unique<benchmark::ConsoleReporter>(
      static_cast<benchmark::ConsoleReporter::OutputOptions>(options));
}

void Report(const proto::Run& run, const std::string& format, bool color,
            Detail detail, std::ostream& out) {
  const std::unique_ptr<BenchmarkReporter> reporter =
      MakeReporter(format, color);
  // The console's preamble describes the machine by its own means, says that
  // the library was built for debugging (which Debian's build claims of
  // itself), and warns of a scaling governor: we say better.
  std::ostringstream discarded;
  reporter->SetOutputStream(&out);
  reporter->SetErrorStream(&discarded);
  BenchmarkReporter::Context context;
  context.name_field_width = 10;
  for (const proto::BenchmarkResult& result : run.results()) {
    context.name_field_width =
        std::max(context.name_field_width, BenchmarkNameOf(result).size() + 7);
  }
  if (!reporter->ReportContext(context)) return;
  std::vector<SummaryRow> rows;
  if (detail == Detail::kSummary) {
    rows = SummaryRows(run);
  } else {
    for (const auto& result : run.results()) rows.push_back({&result, ""});
  }
  // The console begins a new table where counters come or go.
  if (format == "console") {
    std::stable_partition(rows.begin(), rows.end(), [](const SummaryRow& row) {
      return row.result->outcome() == proto::OK;
    });
  }
  int family = 0;
  for (const SummaryRow& row : rows) {
    const RunBuilder builder(*row.result, family++);
    if (detail == Detail::kSummary) {
      reporter->ReportRuns(builder.Summary(row.label));
      continue;
    }
    const std::vector<GbRun> aggregates = builder.Aggregates();
    if (detail == Detail::kAll || aggregates.empty()) {
      reporter->ReportRuns(builder.Processes());
    }
    if (!aggregates.empty()) reporter->ReportRuns(aggregates);
  }
  reporter->Finalize();
}

// The path of --benchmark_out; a relative one starts where the user is.
std::string OutFile() {
  return JoinPath(WorkingDirectory(), absl::GetFlag(FLAGS_benchmark_out));
}

// What would fail after an hour of measuring should fail before it.
absl::Status CheckOutFile() {
  const std::string given = absl::GetFlag(FLAGS_benchmark_out);
  if (given.empty()) return absl::OkStatus();
  const std::string path = OutFile();
  const std::string folder = DirectoryOf(path);
  FileInfo info;
  std::string problem;
  if (FileSystem::Real()->Stat(folder, &info) != 0 || !info.is_directory) {
    problem = absl::StrCat("there is no folder ", folder);
  } else if (FileSystem::Real()->Stat(path, &info) == 0 && info.is_directory) {
    problem = "it is a folder";
  } else if (access(folder.c_str(), W_OK) != 0) {
    problem = absl::StrCat("the folder ", folder, " can't be written");
  }
  if (problem.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("flag --benchmark_out=", given, ": ", problem,
                   ", expected a file in a folder that exists"));
}

absl::Status CheckOneOf(absl::string_view flag, const std::string& value,
                        const std::vector<std::string>& allowed) {
  for (const std::string& option : allowed) {
    if (value == option) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "flag --", flag, "=", value, ": ", ExpectedOneOf(value, allowed)));
}

}  // namespace

std::vector<std::string> GoogleBenchmarkFlags() {
  return {"benchmark_filter",
          "benchmark_list_tests",
          "benchmark_min_time",
          "benchmark_repetitions",
          "benchmark_enable_random_interleaving",
          "benchmark_report_aggregates_only",
          "benchmark_display_aggregates_only",
          "benchmark_format",
          "benchmark_out",
          "benchmark_out_format",
          "benchmark_color",
          "benchmark_counters_tabular",
          "benchmark_context",
          "benchmark_time_unit",
          "benchmark_perf_counters",
          "v"};
}

absl::Status CheckGoogleBenchmarkFlags() {
  const std::vector<std::string> formats = {"console", "json", "csv"};
  const std::string context = absl::GetFlag(FLAGS_benchmark_context);
  for (const absl::Status& status :
       {CheckOneOf("benchmark_format", absl::GetFlag(FLAGS_benchmark_format),
                   formats),
        CheckOneOf("benchmark_out_format",
                   absl::GetFlag(FLAGS_benchmark_out_format), formats),
        CheckOneOf("benchmark_color", absl::GetFlag(FLAGS_benchmark_color),
                   {"auto", "true", "false", "yes", "no", "1", "0"}),
        CheckOneOf("benchmark_time_unit",
                   absl::GetFlag(FLAGS_benchmark_time_unit),
                   {"", "ns", "us", "ms", "s"}),
        CheckOutFile()}) {
    if (!status.ok()) return status;
  }
  if (!absl::GetFlag(FLAGS_benchmark_perf_counters).empty()) {
    return absl::InvalidArgumentError(
        "flag --benchmark_perf_counters: unsupported here: workers measure "
        "wall and processor time only");
  }
  if (absl::GetFlag(FLAGS_benchmark_repetitions) < 0 ||
      absl::GetFlag(FLAGS_benchmark_repetitions) > 10'000) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --benchmark_repetitions=",
        absl::GetFlag(FLAGS_benchmark_repetitions), ": expected 0 to 10000"));
  }
  const double min_time = absl::GetFlag(FLAGS_benchmark_min_time);
  if (!(min_time >= 0 && min_time <= 3600)) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --benchmark_min_time=", min_time,
                     ": expected 0 to 3600 seconds"));
  }
  std::string filter = absl::GetFlag(FLAGS_benchmark_filter);
  if (absl::StartsWith(filter, "-")) filter.erase(0, 1);
  const RE2 pattern(filter, RE2::Quiet);
  if (!pattern.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --benchmark_filter=", filter, ": ", pattern.error()));
  }
  if (!context.empty()) {
    for (absl::string_view item : absl::StrSplit(context, ',')) {
      const std::pair<std::string, std::string> parts =
          absl::StrSplit(item, absl::MaxSplits('=', 1));
      if (parts.first.empty() || !absl::StrContains(item, '=')) {
        return absl::InvalidArgumentError(absl::StrCat(
            "flag --benchmark_context=", context, ": expected key=value,..."));
      }
      benchmark::AddCustomContext(parts.first, parts.second);
    }
  }
  return absl::OkStatus();
}

bool MatchesBenchmarkFilter(absl::string_view name) {
  std::string filter = absl::GetFlag(FLAGS_benchmark_filter);
  if (filter.empty() || filter == "all") return true;
  const bool inverted = filter[0] == '-';
  if (inverted) filter.erase(0, 1);
  return RE2::PartialMatch(re2::StringPiece(name.data(), name.size()),
                           filter) != inverted;
}

bool BenchmarkFormatIsConsole() {
  return absl::GetFlag(FLAGS_benchmark_format) == "console";
}

bool BenchmarkListTests() { return absl::GetFlag(FLAGS_benchmark_list_tests); }

bool BenchmarkRandomInterleaving() {
  return absl::GetFlag(FLAGS_benchmark_enable_random_interleaving);
}

int BenchmarkRepetitions() {
  return absl::GetFlag(FLAGS_benchmark_repetitions);
}

double BenchmarkMinTimeSeconds() {
  return absl::GetFlag(FLAGS_benchmark_min_time);
}

std::string BenchmarkNameOf(const proto::BenchmarkResult& result) {
  return tracker::DisplayName(result.key());
}

absl::Status ReportToGoogleBenchmark(const proto::Run& run, std::ostream& out) {
  benchmark::AddCustomContext("optrail_hardware", run.hardware().id());
  benchmark::AddCustomContext("optrail_compilation_mode",
                              run.toolchain().compilation_mode());
  const bool aggregates_everywhere =
      absl::GetFlag(FLAGS_benchmark_report_aggregates_only);
  const std::string format = absl::GetFlag(FLAGS_benchmark_format);
  const std::string color_flag = absl::GetFlag(FLAGS_benchmark_color);
  const bool color = color_flag == "auto"
                         ? isatty(STDOUT_FILENO) == 1
                         : absl::StartsWith(color_flag, "t") ||
                               absl::StartsWith(color_flag, "y") ||
                               color_flag == "1";
  Detail detail = Detail::kAll;
  if (aggregates_everywhere ||
      absl::GetFlag(FLAGS_benchmark_display_aggregates_only)) {
    detail = Detail::kAggregatesOnly;
  } else if (format == "console" && BenchmarkRepetitions() == 0) {
    detail = Detail::kSummary;
  }
  Report(run, format, color, detail, out);

  if (absl::GetFlag(FLAGS_benchmark_out).empty()) return absl::OkStatus();
  std::ostringstream file;
  Report(run, absl::GetFlag(FLAGS_benchmark_out_format), /*color=*/false,
         aggregates_everywhere ? Detail::kAggregatesOnly : Detail::kAll, file);
  return WriteOutput(OutFile(), file.str());
}

}  // namespace optrail::suites
