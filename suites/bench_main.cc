// main() of the operator macro's NAME_bench targets.

#include "suites/commands.h"
#include "suites/single_operator.h"
#include "suites/worker.h"

int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv))
    return optrail::suites::RunWorker();
  return optrail::suites::RunForLinkedOperator(optrail::suites::BenchCommand,
                                               "bench", argc, argv);
}
