// Writes a report of made-up data, to look at:
//
//   bazel run //reports/sample:sample_report -- OUT.html [COMMITS [SHAPES
//   [KIND]]]
//
// KIND: "hostile" names benchmarks like markup; "imported" is what another tool
// would have given: whole names, no configs, here on two branches; "states" has
// every verdict, as `optrail demo` has.

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "reports/build_report_data.h"
#include "reports/html_report.h"
#include "reports/sample/sample_history.h"

namespace {

void MakeImported(std::vector<optrail::proto::Run>* runs) {
  for (optrail::proto::Run& run : *runs) {
    run.clear_workload();
    run.clear_workload_layers();
    const bool other = run.commit().first_parent_position() % 2 == 1;
    run.mutable_commit()->set_branch(other ? "dev" : "main");
    for (optrail::proto::BenchmarkResult& result : *run.mutable_results()) {
      const std::string name = absl::StrCat(result.key().operator_name(), "/",
                                            result.key().selection());
      result.clear_key();
      result.mutable_key()->set_operator_name(name);
      result.clear_config();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: sample_report OUT.html [COMMITS [SHAPES [KIND]]]\n";
    return 2;
  }
  optrail::reports::SampleOptions sample;
  if (argc > 2) sample.commits = std::atoi(argv[2]);
  if (sample.commits == 0) sample.sessions = 0;  // an empty history
  if (argc > 3) sample.shapes_per_operator = std::atoi(argv[3]);
  const std::string kind = argc > 4 ? argv[4] : "";
  sample.hostile_names = kind == "hostile";
  sample.states = kind == "states";
  optrail::reports::SampleHistory history =
      optrail::reports::MakeSampleHistory(sample);
  if (kind == "imported") MakeImported(&history.runs);

  optrail::reports::BuildOptions options;
  options.title = "Operator performance";
  options.source = "a synthetic history";
  options.triage = history.triage;
  options.explain = [](const optrail::tracker::Change&) {
    return std::vector<std::string>{"config: tile 64 -> 32",
                                    "share of the roofline: 83% -> 76%"};
  };
  if (kind != "imported") options.diagnoses = history.diagnoses;
  options.now_unix_ns = sample.end_unix_ns;
  const std::string page =
      WriteHtmlReport(BuildReportData(history.runs, history.sessions, options));
  const absl::Status written = optrail::WriteFileAtomically(argv[1], page);
  if (!written.ok()) {
    std::cerr << written.message() << "\n";
    return 2;
  }
  std::cout << argv[1] << ": " << page.size() << " bytes\n";
}
