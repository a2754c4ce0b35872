#include "lib/threads.h"

#include <pthread.h>

#include <atomic>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace optrail::lib {
namespace {

std::atomic<uint32_t> forks{0};

absl::Status CheckCount(int count) {
  if (count >= 1 && count <= kMostThreads) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "count is ", count, ", expected 1 to ", kMostThreads, " threads"));
}

// True on a thread that is inside a body.
thread_local bool inside_loop = false;

// A loop that the caller's threads run.
struct Loop {
  absl::FunctionRef<void(int64_t)> body;
  int64_t count;
  std::atomic<int64_t> calls{0};
  std::atomic<uint64_t> sum{0};  // of the indices

  static void Step(void* argument, int64_t i) {
    Loop& loop = *static_cast<Loop*>(argument);
    if (i < 0 || i >= loop.count) return;
    inside_loop = true;
    loop.body(i);
    inside_loop = false;
    loop.sum.fetch_add(static_cast<uint64_t>(i), std::memory_order_relaxed);
    loop.calls.fetch_add(1, std::memory_order_release);
  }
};

}  // namespace

uint32_t Forks() {
  static const int watched = pthread_atfork(
      nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  (void)watched;
  return forks.load(std::memory_order_relaxed);
}

Threads::Threads(int count) : count_(count), forks_(Forks()) {}

absl::StatusOr<std::unique_ptr<Threads>> Threads::Create(int count) {
  if (absl::Status status = CheckCount(count); !status.ok()) return status;
  std::unique_ptr<Threads> threads(new Threads(count));
  try {
    threads->pool_ = std::make_unique<ops::ThreadPool>(count);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the system does not start ", count, " threads: ", error.what()));
  }
  return threads;
}

absl::StatusOr<std::unique_ptr<Threads>> Threads::Adopt(
    optrail_parallel_for parallel_for, void* context, int count) {
  if (absl::Status status = CheckCount(count); !status.ok()) return status;
  if (parallel_for == nullptr) {
    return absl::InvalidArgumentError("parallel_for is NULL");
  }
  std::unique_ptr<Threads> threads(new Threads(count));
  threads->parallel_for_ = parallel_for;
  threads->context_ = context;
  return threads;
}

Threads::~Threads() {
  if (!CheckAlive().ok()) (void)pool_.release();
}

absl::Status Threads::CheckAlive() const {
  if (pool_ == nullptr || forks.load(std::memory_order_relaxed) == forks_) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "these threads were created before fork(), which does not copy threads; "
      "next: optrail_threads_create() in the child");
}

absl::Status Threads::Loops::RunByCaller(
    int64_t count, absl::FunctionRef<void(int64_t)> body) const {
  Loop loop{body, count};
  try {
    threads_.parallel_for_(threads_.context_, count, &Loop::Step, &loop);
  } catch (...) {
    return absl::FailedPreconditionError(
        "the caller's parallel_for threw an exception");
  }
  const int64_t calls = loop.calls.load(std::memory_order_acquire);
  const uint64_t n = static_cast<uint64_t>(count);
  const uint64_t sum = n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
  if (calls == count && loop.sum.load(std::memory_order_relaxed) == sum) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      calls == count
          ? absl::StrCat("the caller's parallel_for made ", count,
                         " calls, but not one for each index below ", count)
          : absl::StrCat("the caller's parallel_for returned after ", calls,
                         " of ", count, " calls"));
}

void Threads::Loops::ParallelFor(int64_t count,
                                 absl::FunctionRef<void(int64_t)> body) {
  if (count <= 0 || !status_.ok()) return;
  if (threads_.pool_ != nullptr) {
    threads_.pool_->ParallelFor(count, body);
  } else if (inside_loop) {
    // Many pools cannot run a loop inside a loop.
    for (int64_t i = 0; i < count; ++i) body(i);
  } else {
    status_ = RunByCaller(count, body);
  }
}

}  // namespace optrail::lib
