// main() of the operator macro's NAME_tune targets.

#include "suites/command/commands.h"
#include "suites/command/single_operator.h"
#include "suites/worker/worker.h"

int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv))
    return optrail::suites::RunWorker(argc, argv);
  return optrail::suites::RunForLinkedOperator(optrail::suites::TuneCommand,
                                               "tune", argc, argv);
}
