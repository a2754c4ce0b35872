#include "suites/worker/references_ahead.h"

#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

namespace optrail::suites {
namespace {

// Far before compilers, of which there are many and which are not waited for as
// much, and behind who launches.
constexpr int kNiceness = 1;

}  // namespace

ReferencesAhead::ReferencesAhead(const ops::Operator& op, proto::Shape shape,
                                 std::string folder, std::string build,
                                 std::vector<uint64_t> seeds)
    : op_(op),
      shape_(std::move(shape)),
      folder_(std::move(folder)),
      build_(std::move(build)),
      seeds_(std::move(seeds)),
      thread_([this] { Compute(); }) {}

ReferencesAhead::~ReferencesAhead() {
  {
    const absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

ops::CheckedOperands::Made ReferencesAhead::Await(uint64_t seed) {
  const auto found = std::find(seeds_.begin(), seeds_.end(), seed);
  if (found == seeds_.end()) return {};
  const auto index = static_cast<size_t>(found - seeds_.begin());
  const absl::MutexLock lock(&mutex_);
  const auto is_done = [this, index]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return done_ > index;
  };
  mutex_.Await(absl::Condition(&is_done));
  return index < made_.size() ? std::exchange(made_[index], {})
                              : ops::CheckedOperands::Made();
}

void ReferencesAhead::Compute() {
  setpriority(PRIO_PROCESS, 0, kNiceness);
  const absl::StatusOr<std::unique_ptr<ops::CheckedOperands>> operands =
      ops::CheckedOperands::CreateToMake(op_, shape_);
  if (operands.ok()) (*operands)->ShareReferences(folder_, build_);
  for (const uint64_t seed : seeds_) {
    ops::CheckedOperands::Made made;
    if (operands.ok()) {
      (*operands)->Make(seed, ops::Values::kHard);
      (*operands)->ComputeReference();
      (*operands)->Make(seed, ops::Values::kTypical);
      made = (*operands)->TakeMade(seed);
    }
    const absl::MutexLock lock(&mutex_);
    made_.push_back(std::move(made));
    ++done_;
    if (ending_) done_ = seeds_.size();
    if (done_ >= seeds_.size()) return;
  }
}

}  // namespace optrail::suites
