#ifndef OPTRAIL_SUITES_WORKER_WORKER_H_
#define OPTRAIL_SUITES_WORKER_WORKER_H_

// The inside of a worker process: answers one request at a time about a task
// (opened_task.h, measure.h). A config that crashes, hangs or eats all memory
// takes this process down and nothing else: worker_evaluator.h is the outside.
//
//   if (IsWorker(argc, argv)) {  // the first thing that main() does
//     return RunWorker(argc, argv);
//   }

namespace optrail::suites {

// The argument that makes a binary a worker.
inline constexpr char kWorkerFlag[] = "--optrail_worker";

// Or the guard of one that compiles (base/process/process_guard.h).
bool IsWorker(int argc, char** argv);

// Answers requests on standard input until it is closed; the exit code.
int RunWorker(int argc, char** argv);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_WORKER_H_
