#include "graph/memory/check.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace optrail::graph {
namespace {

// The space that one buffer or one group occupies.
struct Storage {
  int first = 0;  // a buffer in it, for messages
  int64_t lower = 0, upper = 0, offset = 0, size = 0;
};

std::string Describe(const MemoryBuffer& buffer, int64_t offset) {
  return absl::StrCat("buffer \"", buffer.id, "\", live in [", buffer.lower,
                      ", ", buffer.upper, "), at bytes [", offset, ", ",
                      offset + buffer.size_bytes, ")");
}

absl::Status CheckOffset(const MemoryBuffer& buffer, int64_t offset,
                         int64_t capacity, int64_t alignment) {
  if (offset < 0 || offset > capacity - buffer.size_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        "buffer \"", buffer.id, "\": offset ", offset, " and size ",
        buffer.size_bytes, ", expected to be within ", capacity, " bytes"));
  }
  if (offset % alignment != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("buffer \"", buffer.id, "\": offset ", offset,
                     ", expected a multiple of ", alignment));
  }
  if (buffer.fixed_offset.has_value() && *buffer.fixed_offset != offset) {
    return absl::FailedPreconditionError(
        absl::StrCat("buffer \"", buffer.id, "\": offset ", offset,
                     ", expected its fixed offset ", *buffer.fixed_offset));
  }
  return absl::OkStatus();
}

absl::Status GatherStorages(const std::vector<MemoryBuffer>& buffers,
                            const std::vector<int64_t>& offsets,
                            std::vector<Storage>* storages) {
  absl::flat_hash_map<std::string, int> groups;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const MemoryBuffer& buffer = buffers[i];
    if (!buffer.group.empty()) {
      const auto [it, is_new] =
          groups.emplace(buffer.group, static_cast<int>(storages->size()));
      if (!is_new) {
        Storage& storage = (*storages)[it->second];
        if (storage.offset != offsets[i]) {
          return absl::FailedPreconditionError(absl::StrCat(
              Describe(buffer, offsets[i]), ", expected the offset ",
              storage.offset, " of its group \"", buffer.group, "\""));
        }
        storage.lower = std::min(storage.lower, buffer.lower);
        storage.upper = std::max(storage.upper, buffer.upper);
        storage.size = std::max(storage.size, buffer.size_bytes);
        continue;
      }
    }
    storages->push_back({static_cast<int>(i), buffer.lower, buffer.upper,
                         offsets[i], buffer.size_bytes});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPlan(const std::vector<MemoryBuffer>& buffers,
                       const std::vector<int64_t>& offsets,
                       int64_t capacity_bytes, int64_t alignment_bytes) {
  if (offsets.size() != buffers.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(offsets.size(), " offsets, expected one for each of ",
                     buffers.size(), " buffers"));
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const absl::Status status =
        CheckOffset(buffers[i], offsets[i], capacity_bytes, alignment_bytes);
    if (!status.ok()) return status;
  }
  std::vector<Storage> storages;
  const absl::Status status = GatherStorages(buffers, offsets, &storages);
  if (!status.ok()) return status;
  // Ends come before starts of the same time: lifetimes are half-open.
  std::vector<std::tuple<int64_t, bool, int>> events;
  for (size_t i = 0; i < storages.size(); ++i) {
    if (storages[i].size == 0) continue;
    events.emplace_back(storages[i].lower, true, i);
    events.emplace_back(storages[i].upper, false, i);
  }
  std::sort(events.begin(), events.end());
  std::map<int64_t, int> live;  // offset -> storage
  for (const auto& [time, starts, i] : events) {
    const Storage& storage = storages[i];
    if (!starts) {
      live.erase(storage.offset);
      continue;
    }
    const auto above = live.lower_bound(storage.offset);
    for (auto it :
         {above == live.begin() ? live.end() : std::prev(above), above}) {
      if (it == live.end()) continue;
      const Storage& other = storages[it->second];
      if (storage.offset < other.offset + other.size &&
          other.offset < storage.offset + storage.size) {
        return absl::FailedPreconditionError(absl::StrCat(
            Describe(buffers[storage.first], storage.offset), " overlaps ",
            Describe(buffers[other.first], other.offset)));
      }
    }
    live.emplace(storage.offset, i);
  }
  return absl::OkStatus();
}

}  // namespace optrail::graph
