// Writes a report of made-up data, to look at:
//
//   bazel run //reports:sample_report -- OUT.html [COMMITS [SHAPES [hostile]]]

#include <cstdlib>
#include <iostream>
#include <string>

#include "base/file.h"
#include "reports/build_report_data.h"
#include "reports/html_report.h"
#include "reports/sample_history.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: sample_report OUT.html [COMMITS [SHAPES [hostile]]]\n";
    return 2;
  }
  optrail::reports::SampleOptions sample;
  if (argc > 2) sample.commits = std::atoi(argv[2]);
  if (sample.commits == 0) sample.sessions = 0;  // an empty history
  if (argc > 3) sample.shapes_per_operator = std::atoi(argv[3]);
  sample.hostile_names = argc > 4 && std::string(argv[4]) == "hostile";
  const optrail::reports::SampleHistory history =
      optrail::reports::MakeSampleHistory(sample);

  optrail::reports::BuildOptions options;
  options.title = "Operator performance";
  options.source = "a synthetic history";
  options.synthetic = true;
  const std::string page =
      WriteHtmlReport(BuildReportData(history.runs, history.sessions, options));
  const absl::Status written = optrail::WriteFileAtomically(argv[1], page);
  if (!written.ok()) {
    std::cerr << written.message() << "\n";
    return 2;
  }
  std::cout << argv[1] << ": " << page.size() << " bytes\n";
}
