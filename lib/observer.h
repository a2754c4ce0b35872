#ifndef OPTRAIL_LIB_OBSERVER_H_
#define OPTRAIL_LIB_OBSERVER_H_

// Counts what a program asks for, where it wants that: optrail_observe().
//
//   if (const Observer* const observer = Observer::Get()) {
//     counter.Of(*observer, [&] { return KeyOf(problem); })->AddLookup();
//   }
//
// Thread-safe. Without an observer the question costs a load.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tuning/observed/observed_file.h"

namespace optrail::lib {

class Observer {
 public:
  // Null while nothing is counted.
  static const Observer* Get() {
    return instance_.load(std::memory_order_acquire);
  }

  // Does what optrail_observe() says. FailedPrecondition if it counts already.
  static absl::Status Start(const std::string& folder, uint32_t flags);
  // Starts once if OPTRAIL_OBSERVE is set. Returns why it could not: no reason
  // to refuse what the caller is about.
  static const absl::Status& StartFromEnvironment();
  // FailedPrecondition says why nothing is counted.
  static absl::Status Counts();

  bool times() const { return times_; }
  tuning::ObservedFile& file() const { return *file_; }

 private:
  Observer(std::unique_ptr<tuning::ObservedFile> file, bool times)
      : file_(std::move(file)), times_(times) {}

  static std::atomic<const Observer*> instance_;
  const std::unique_ptr<tuning::ObservedFile> file_;
  const bool times_;
};

// The counter of one key, found when it is first needed.
class LazyCounter {
 public:
  template <class MakeKey>
  tuning::ObservedCounter* Of(const Observer& observer,
                              const MakeKey& make_key) const {
    tuning::ObservedCounter* counter = counter_.load(std::memory_order_relaxed);
    if (counter == nullptr) {
      counter = observer.file().CounterOf(make_key());
      counter_.store(counter, std::memory_order_relaxed);
    }
    return counter;
  }

 private:
  mutable std::atomic<tuning::ObservedCounter*> counter_{nullptr};
};

}  // namespace optrail::lib

#endif  // OPTRAIL_LIB_OBSERVER_H_
