#ifndef OPTRAIL_SUITES_WORKER_MEASURE_H_
#define OPTRAIL_SUITES_WORKER_MEASURE_H_

// Measure checks contenders against the reference and samples them, inside a
// worker process: one alone, or several interleaved.
//
//   const std::vector<proto::Evaluation> evaluations =
//       Measure(request, task, ask_elsewhere);
//
// There is one for each contender, or one alone that says what went wrong
// first: contenders that are compared all count, or none does.

#include <cstdint>
#include <string>
#include <vector>

#include "suites/proto/worker.pb.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/opened_task.h"
#include "suites/worker/worker_reply.h"

namespace optrail::suites {

// With cold caches a sample is one call, but for devices that bring many in one
// launch; below this, reading the clock and refilling the first cache line
// would be what is measured.
inline constexpr int64_t kMinColdSampleNs = 2'000;

// Why a sampling with cold caches says nothing; "" if it does say something.
std::string TooShortCold(const Sampling& sampling);

std::vector<proto::Evaluation> Measure(
    const proto::WorkerRequest::Evaluate& request, OpenedTask& task,
    const TimeElsewhere& elsewhere);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_MEASURE_H_
