#ifndef OPTRAIL_SUITES_WORKER_REFERENCES_AHEAD_H_
#define OPTRAIL_SUITES_WORKER_REFERENCES_AHEAD_H_

// References of a task, computed on a thread of their own and left in the
// shared folder, while the process opens its device and measures what is ready.
// For devices beside which the host may work.
//
//   ReferencesAhead references(op, shape, folder, build, {0, 1, 2});
//   ... open the device ...
//   references.Await(0);   // CheckedOperands finds it in the folder now

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ops/core/operator.h"
#include "tuning/proto/config.pb.h"

namespace optrail::suites {

class ReferencesAhead {
 public:
  // Of the hard inputs of each seed, in their order. `op` must outlive it.
  ReferencesAhead(const ops::Operator& op, proto::Shape shape,
                  std::string folder, std::string build,
                  std::vector<uint64_t> seeds);
  // Waits for the one that is being computed; the others are left out.
  ~ReferencesAhead();
  ReferencesAhead(const ReferencesAhead&) = delete;
  ReferencesAhead& operator=(const ReferencesAhead&) = delete;

  // Until that of the seed is there, or will not be: what cannot be computed
  // ahead is computed where it is needed. Returns at once for other seeds.
  void Await(uint64_t seed);

 private:
  void Compute();

  const ops::Operator& op_;
  const proto::Shape shape_;
  const std::string folder_, build_;
  const std::vector<uint64_t> seeds_;
  absl::Mutex mutex_;
  size_t done_ ABSL_GUARDED_BY(mutex_) = 0;  // of seeds_
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_REFERENCES_AHEAD_H_
