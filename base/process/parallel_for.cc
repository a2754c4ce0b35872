#include "base/process/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/check.h"

namespace optrail {

void ParallelFor(int64_t count, int threads,
                 absl::FunctionRef<void(int64_t)> work, int64_t piece) {
  OPTRAIL_CHECK(piece >= 1) << "piece is " << piece;
  if (threads <= 0) {
    threads = static_cast<int>(std::thread::hardware_concurrency());
  }
  const int64_t pieces = (count + piece - 1) / piece;
  std::atomic<int64_t> next{0};
  const auto loop = [&] {
    for (int64_t at = next++; at < pieces; at = next++) {
      const int64_t end = std::min((at + 1) * piece, count);
      for (int64_t i = at * piece; i < end; ++i) work(i);
    }
  };
  std::vector<std::thread> others;
  for (int64_t i = 1; i < std::min<int64_t>(threads, pieces); ++i) {
    others.emplace_back(loop);
  }
  loop();
  for (std::thread& thread : others) thread.join();
}

}  // namespace optrail
