#ifndef OPTRAIL_GRAPH_MEMORY_BUFFERS_CSV_H_
#define OPTRAIL_GRAPH_MEMORY_BUFFERS_CSV_H_

// Buffers and their placement as CSV, in the format of MiniMalloc's inputs: one
// row per buffer, a header with the columns id, lower, upper and size, in any
// order and among others.
//
//   id,lower,upper,size,fixed_offset,group
//   weights,0,100,4096,0,
//   x,3,7,1024,,
//   x as a row,5,9,1024,,x
//
// A buffer is live in [lower, upper). `fixed_offset` and `group` are optional
// columns, and may be empty (plan.h says what they mean). `offset`, also
// optional, is where the buffer was placed: WriteBuffersCsv adds it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/memory/plan.h"

namespace optrail::graph {

struct BuffersFile {
  std::vector<MemoryBuffer> buffers;
  // One for each buffer if the file has a column "offset", else empty.
  std::vector<int64_t> offsets;
};

// At most so many buffers are read.
inline constexpr int64_t kMostBuffers = 4'000'000;

// What is wrong (a column that is missing, a number that is none or does not
// fit into 64 bits, lower >= upper, a negative size, an id that comes twice) is
// InvalidArgument that names file, line and field. `name` stands for the file.
absl::StatusOr<BuffersFile> ParseBuffersCsv(absl::string_view text,
                                            absl::string_view name);
absl::StatusOr<BuffersFile> ReadBuffersCsv(const std::string& path);

// `offsets` is in the order of `buffers`.
std::string WriteBuffersCsv(const std::vector<MemoryBuffer>& buffers,
                            const std::vector<int64_t>& offsets);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_MEMORY_BUFFERS_CSV_H_
