#ifndef OPTRAIL_SUITES_WORKER_REFERENCES_AHEAD_H_
#define OPTRAIL_SUITES_WORKER_REFERENCES_AHEAD_H_

// Inputs and references of a task, made on a thread of their own, while the
// process opens its device and measures what is ready. For devices beside which
// the host may work. References are left in the shared folder, too.
//
//   ReferencesAhead references(op, shape, folder, build, {0, 1, 2});
//   ... open the device ...
//   operands->Adopt(references.Await(0));

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ops/core/operator.h"
#include "ops/core/reference_check.h"
#include "tuning/proto/config.pb.h"

namespace optrail::suites {

class ReferencesAhead {
 public:
  // Of each seed, in their order; references are of the hard inputs. `op` must
  // outlive it.
  ReferencesAhead(const ops::Operator& op, proto::Shape shape,
                  std::string folder, std::string build,
                  std::vector<uint64_t> seeds);
  // Waits for the one that is being computed; the others are left out.
  ~ReferencesAhead();
  ReferencesAhead(const ReferencesAhead&) = delete;
  ReferencesAhead& operator=(const ReferencesAhead&) = delete;

  // Those of the seed, once they are there. None, at once, for other seeds and
  // the second time; none also of what cannot be made ahead: it is made where
  // it is needed.
  ops::CheckedOperands::Made Await(uint64_t seed);

 private:
  void Compute();

  const ops::Operator& op_;
  const proto::Shape shape_;
  const std::string folder_, build_;
  const std::vector<uint64_t> seeds_;
  absl::Mutex mutex_;
  // By seed.
  std::vector<ops::CheckedOperands::Made> made_ ABSL_GUARDED_BY(mutex_);
  size_t done_ ABSL_GUARDED_BY(mutex_) = 0;  // of seeds_
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_REFERENCES_AHEAD_H_
