#ifndef OPTRAIL_OPS_DEVICE_CPU_PAGE_TRACE_H_
#define OPTRAIL_OPS_DEVICE_CPU_PAGE_TRACE_H_

// PageTrace watches in which order code visits the pages of some regions: it
// takes the access rights away and counts the faults. It shows passes, strides
// and gathers without a hardware counter.
//
//   PageTrace trace;
//   const int x = trace.Add(memory.mapping(), memory.mapped_bytes());
//   trace.Watch([&] { kernel(); });
//   trace.visits(x);   // 2.0 * pages: two passes over the region
//
// Of each region the pages that were visited last, kOpenPages of them, are
// open: a visit is an access to another one. So a loop over fewer rows than
// that counts as one pass, and a walk down longer columns as a visit an
// element. A fault takes some microseconds; after kMostVisits of a region its
// tracing ends, and the number is a lower bound.
//
// One thread runs what is watched; one trace at a time watches, in the process.
// Memory that the kernel of the system writes (read(2)) must not be watched.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace optrail::ops {

class PageTrace {
 public:
  static constexpr int kOpenPages = 48;
  static constexpr int64_t kMostVisits = 120'000;
  static constexpr int kRecentSteps = 16;

  // `begin` is the start of a page, `bytes` a multiple of pages. The number of
  // the region; -1 where there are too many.
  int Add(void* begin, size_t bytes);

  // Once.
  void Watch(absl::FunctionRef<void()> run);

  int64_t pages(int region) const;
  int64_t visits(int region) const;
  // Visits whose distance from the one before, in pages, is one of the last
  // kRecentSteps distances. Vectorised code visits the rows of a column in an
  // order that repeats with every vector.
  int64_t regular(int region) const;
  // Visits to the page before or behind the last one: a pass consists of them,
  // a walk across the layout does not.
  int64_t adjacent(int region) const;
  // Visits to pages that had not been visited before.
  int64_t distinct(int region) const;
  bool complete(int region) const;

 private:
  std::vector<std::pair<char*, size_t>> regions_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_PAGE_TRACE_H_
