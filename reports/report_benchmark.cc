// How long a report takes to build and how large it gets.
//
//   bazel run //reports:report_benchmark
//
// Arguments: series (rounded up to whole shapes, 42 series each) and commits.

#include <string>

#include "benchmark/benchmark.h"
#include "reports/build_report_data.h"
#include "reports/html_report.h"
#include "reports/sample/sample_history.h"

namespace optrail::reports {
namespace {

SampleHistory MakeHistory(const benchmark::State& state) {
  SampleOptions options;
  options.shapes_per_operator = (static_cast<int>(state.range(0)) + 41) / 42;
  options.commits = static_cast<int>(state.range(1));
  return MakeSampleHistory(options);
}

// From parsed runs to the page's bytes.
void BM_BuildAndWriteHtml(benchmark::State& state) {
  const SampleHistory history = MakeHistory(state);
  std::string page;
  for (auto _ : state) {
    page = WriteHtmlReport(BuildReportData(history.runs, history.sessions, {}));
    benchmark::DoNotOptimize(page);
  }
  state.counters["page_bytes"] = page.size();
}
BENCHMARK(BM_BuildAndWriteHtml)
    ->Args({100, 60})
    ->Args({1000, 60})
    ->Args({1000, 200})
    ->Unit(benchmark::kMillisecond);

// The page alone.
void BM_WriteHtml(benchmark::State& state) {
  const SampleHistory history = MakeHistory(state);
  const ReportData data = BuildReportData(history.runs, history.sessions, {});
  std::string page;
  for (auto _ : state) {
    page = WriteHtmlReport(data);
    benchmark::DoNotOptimize(page);
  }
  state.counters["page_bytes"] = page.size();
}
BENCHMARK(BM_WriteHtml)
    ->Args({100, 60})
    ->Args({1000, 200})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace optrail::reports
