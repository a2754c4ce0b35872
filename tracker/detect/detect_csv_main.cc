// bazel run //tracker/detect:detect_csv -- --csv=FILE [--mode=online]
//
// Does the work of `optrail detect --csv` in a program of its own.

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "tracker/detect/detect_csv.h"

ABSL_FLAG(std::string, csv, "", "CSV file with the columns id, t and value");
ABSL_FLAG(optrail::tracker::DetectMode, mode,
          optrail::tracker::DetectMode::kAuto, "auto, offline or online");
ABSL_FLAG(std::string, format, "json", "json, table, csv or markdown");
ABSL_FLAG(int, threads, 0, "0: one per core");

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Prints the change points of series in a CSV.");
  absl::ParseCommandLine(argc, argv);
  optrail::tracker::DetectCsvOptions options;
  options.csv = absl::GetFlag(FLAGS_csv);
  options.mode = absl::GetFlag(FLAGS_mode);
  options.format = absl::GetFlag(FLAGS_format);
  options.num_threads = absl::GetFlag(FLAGS_threads);
  const absl::Status status = optrail::tracker::DetectCsv(options, std::cout);
  if (!status.ok()) {
    std::cerr << "detect_csv: " << status.message() << "\n";
    return 2;
  }
  return 0;
}
