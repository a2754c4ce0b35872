// main() of the `suite` macro's targets that name their operators.

#include "cli/suite.h"
#include "suites/command/command_line.h"
#include "suites/worker/worker.h"

int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker(argc, argv);
  }
  return optrail::suites::RunSingleCommand(
      "optrail suite", optrail::cli::SuiteCommand(), argc, argv);
}
