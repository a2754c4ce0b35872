#ifndef OPTRAIL_CARBON_CERTIFIED_WORK_H_
#define OPTRAIL_CARBON_CERTIFIED_WORK_H_

// The unit of work of a certificate: which benchmarks of two runs it counts,
// and how often.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const CertifiedWork work,
//                            CertifiedWorkOf(base, candidate, RE2("")));
//   for (const CountedCall& call : work.base) Add(call.calls, *call.result);
//
// A unit is one call of each benchmark that both runs have or, for runs of a
// workload, one run of it: each layer that counts for the model once, in the
// variant that the model would use. That is the tuned config where one was
// measured, else the default, of the device's own backend before libraries.
// Results point into the runs.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "re2/re2.h"
#include "tracker/proto/run.pb.h"

namespace optrail::carbon {

struct CountedCall {
  std::string benchmark;  // canonical text of its key
  const proto::BenchmarkResult* result = nullptr;
  double calls = 1;     // per unit
  std::string layer;    // "matmul m=1,n=2,k=3/f32"; "" without a workload
  std::string variant;  // "tuned", "default", ...; "" without a workload
};

struct CertifiedWork {
  std::vector<CountedCall> base, candidate;  // in one order
  // Benchmarks or layers that one of the runs lacks or skipped.
  std::vector<std::string> left_out;
  std::string unit;  // "a run of bert, 10 of 12 layers"
};

// FailedPrecondition where the runs are of different workloads, or where
// several variants of a layer are as good a choice; the message names them.
absl::StatusOr<CertifiedWork> CertifiedWorkOf(const proto::Run& base,
                                              const proto::Run& candidate,
                                              const RE2& filter);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_CERTIFIED_WORK_H_
