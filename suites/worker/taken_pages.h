#ifndef OPTRAIL_SUITES_WORKER_TAKEN_PAGES_H_
#define OPTRAIL_SUITES_WORKER_TAKEN_PAGES_H_

// Takes some memory, at random how much, so that what is allocated after it
// lies elsewhere than in the process before.
//
//   const TakenPages taken(std::random_device{}());  // first of all
//
// The second-level cache goes by physical addresses, so how fast code of about
// its size is depends on which pages a process got: by a tenth. The kernel
// hands out first what was given back last, so that processes which do the same
// one after another get pages of one lot, the more so the calmer the machine
// is, and five of them are less than five pieces of evidence.

#include <cstddef>
#include <cstdint>

namespace optrail::suites {

class TakenPages {
 public:
  static constexpr int kMostSmallPages = 1024;  // 4 MiB
  static constexpr int kMostHugePages = 4;      // 8 MiB

  // Where the system refuses, nothing is taken.
  explicit TakenPages(uint64_t seed);
  ~TakenPages();
  TakenPages(const TakenPages&) = delete;
  TakenPages& operator=(const TakenPages&) = delete;

  size_t size_bytes() const { return small_.size_bytes + huge_.size_bytes; }

 private:
  struct Mapping {
    void* begin = nullptr;
    size_t size_bytes = 0;
  };
  static Mapping Take(int64_t pages, size_t page_bytes, bool huge);

  Mapping small_, huge_;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_TAKEN_PAGES_H_
