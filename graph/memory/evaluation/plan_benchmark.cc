// Plans every CSV file of a folder, or generated inputs, and prints a table.
//
//   plan_benchmark --inputs=DIR --capacity=1048576
//   plan_benchmark --tight=10 --training=2
//
// Processor times depend on the machine. "units" is the time over that of the
// calibration loop, which does what the exact search mostly does, and so can be
// compared between machines.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/file/file.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "graph/memory/buffers_csv.h"
#include "graph/memory/evaluation/generated_buffers.h"
#include "graph/memory/plan.h"

ABSL_FLAG(std::string, inputs, "", "A folder of CSV files.");
ABSL_FLAG(int32_t, tight, 0,
          "Generated inputs of each of 100, 200 and 300 pieces of a full "
          "rectangle, placed within its height.");
ABSL_FLAG(int32_t, training, 0,
          "Generated training steps of each of 1,000, 10,000 and 60,000 "
          "buffers.");
ABSL_FLAG(int64_t, capacity, -1,
          "Bytes that the arena may have; -1: as few as can be found.");
ABSL_FLAG(absl::Duration, time_limit, absl::Seconds(10),
          "Processor time for one input.");
ABSL_FLAG(uint64_t, seed, 1, "Seed of planner and inputs.");
ABSL_FLAG(optrail::OutputFormat, format, optrail::OutputFormat::kTable,
          "table, json, csv or markdown.");

namespace optrail::graph {
namespace {

int64_t ThreadNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

// Maxima and minima over short ranges that overlap, as in the inference of
// floors. The least of several runs: interference only slows code down.
double CalibrationNs() {
  constexpr int kSections = 128, kRounds = 20000;
  double least = HUGE_VAL;
  for (int run = 0; run < 5; ++run) {
    std::vector<int64_t> floors(kSections, 0), lowest(kSections, 0);
    const int64_t start = ThreadNs();
    uint64_t state = 1;
    for (int i = 0; i < kRounds; ++i) {
      state = state * 6364136223846793005 + 1442695040888963407;
      const int begin = static_cast<int>((state >> 33) % (kSections - 32));
      const int end = begin + 1 + static_cast<int>((state >> 50) % 32);
      int64_t most = 0;
      for (int s = begin; s < end; ++s) most = std::max(most, floors[s]);
      for (int s = begin; s < end; ++s) {
        lowest[s] = std::min(lowest[s] + 1, most);
      }
      floors[begin] = lowest[end - 1] + static_cast<int64_t>(state >> 60);
    }
    OPTRAIL_CHECK(floors[0] >= 0);
    least = std::min(least, static_cast<double>(ThreadNs() - start));
  }
  return least;
}

class Benchmark {
 public:
  Benchmark()
      : calibration_ns_(CalibrationNs()),
        table_({{"input"},
                {"buffers", Align::kRight},
                {"lower bound", Align::kRight, "lower_bound_bytes"},
                {"arena", Align::kRight, "arena_bytes"},
                {"ratio", Align::kRight},
                {"proof"},
                {"time", Align::kRight, "processor_time_ns"},
                {"units", Align::kRight, "calibration_units"},
                {"method"}}) {}

  void Add(const std::string& name, const std::vector<MemoryBuffer>& buffers,
           int64_t capacity) {
    MemoryPlanOptions options;
    if (capacity >= 0) options.capacity_bytes = capacity;
    options.time_limit = absl::GetFlag(FLAGS_time_limit);
    options.seed = absl::GetFlag(FLAGS_seed);
    const auto plan = Plan(buffers, options);
    OPTRAIL_CHECK(plan.ok()) << name << ": " << plan.status();
    const double ns = absl::ToDoubleNanoseconds(plan->processor_time);
    const double ratio = static_cast<double>(plan->arena_bytes) /
                         static_cast<double>(plan->lower_bound_bytes);
    table_.AddRow({name, Cell::Integer(static_cast<int64_t>(buffers.size())),
                   Cell::Integer(plan->lower_bound_bytes),
                   Cell::Integer(plan->arena_bytes),
                   Cell::Number(ratio, absl::StrFormat("%.6f", ratio)),
                   PlanProofName(plan->proof),
                   Cell::Number(ns, FormatDurationNs(ns)),
                   Cell::Number(ns / calibration_ns_,
                                absl::StrFormat("%.1f", ns / calibration_ns_)),
                   plan->method});
    total_ns_ += ns;
    most_ns_ = std::max(most_ns_, ns);
    in_capacity_ += capacity >= 0 && plan->arena_bytes <= capacity;
  }

  void Print() const {
    std::cout << table_.Format(absl::GetFlag(FLAGS_format), TerminalWidth());
    std::cerr << table_.num_rows() << " inputs, " << in_capacity_
              << " within a capacity that was given; together "
              << FormatDurationNs(total_ns_) << ", at most "
              << FormatDurationNs(most_ns_) << "; calibration loop "
              << FormatDurationNs(calibration_ns_) << "\n";
  }

 private:
  const double calibration_ns_;
  Table table_;
  double total_ns_ = 0, most_ns_ = 0;
  int in_capacity_ = 0;
};

void AddGenerated(Benchmark& benchmark) {
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  for (const int count : {100, 200, 300}) {
    for (int i = 0; i < absl::GetFlag(FLAGS_tight); ++i) {
      benchmark.Add(absl::StrCat("tight/", count, "/", seed + i),
                    TightBuffers(count, 0.1, seed + i), kTightCapacity);
    }
  }
  for (const int layers : {71, 714, 4286}) {
    for (int i = 0; i < absl::GetFlag(FLAGS_training); ++i) {
      benchmark.Add(absl::StrCat("training/", layers, "/", seed + i),
                    TrainingBuffers(layers, seed + i), -1);
    }
  }
}

int Main() {
  Benchmark benchmark;
  const std::string folder = absl::GetFlag(FLAGS_inputs);
  if (!folder.empty()) {
    const auto files = ListRecursively(folder, ".csv");
    OPTRAIL_CHECK(files.ok()) << files.status();
    for (const std::string& path : *files) {
      const auto file = ReadBuffersCsv(path);
      if (!file.ok()) {
        std::cerr << file.status().message() << "\n";
        return 2;
      }
      benchmark.Add(std::string(FileNameOf(path)), file->buffers,
                    absl::GetFlag(FLAGS_capacity));
    }
  }
  AddGenerated(benchmark);
  benchmark.Print();
  return 0;
}

}  // namespace
}  // namespace optrail::graph

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return optrail::graph::Main();
}
