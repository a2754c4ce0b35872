#include "ops/device/cuda/neighbours.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace optrail::ops::cuda {
namespace {

// Longer than any sampling.
constexpr absl::Duration kKept = absl::Minutes(2);

// "process 4711 (python3)".
std::string NameOf(int pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/comm"));
  std::string command;
  std::getline(file, command);
  // A process may choose any bytes.
  for (char& c : command) {
    if (c < ' ' || c > '~') c = '?';
  }
  return absl::StrCat("process ", pid, command.empty() ? "" : " (", command,
                      command.empty() ? "" : ")");
}

}  // namespace

void Neighbours::Tell(
    absl::Time now, const std::vector<int>& pids,
    const absl::optional<std::vector<ProcessActivity>>& activity) {
  activity_is_known_ = activity.has_value();
  for (auto& [pid, neighbour] : known_) {
    neighbour.is_open = false;
    std::vector<absl::Time>& active = neighbour.active;
    active.erase(active.begin(),
                 std::lower_bound(active.begin(), active.end(), now - kKept));
  }
  for (const int pid : pids) {
    const auto [found, is_new] = known_.try_emplace(pid);
    Neighbour& neighbour = found->second;
    neighbour.is_open = true;
    if (!is_new) continue;
    neighbour.name = NameOf(pid);
    // It opens a context now, which disturbs, and its account comes late. Of
    // those that were here before, the first account tells.
    if (told_) neighbour.active.push_back(now);
  }
  for (const ProcessActivity& one :
       activity.value_or(std::vector<ProcessActivity>())) {
    const auto found = known_.find(one.pid);
    if (found == known_.end() || one.percent == 0) continue;
    // An account may be told twice.
    std::vector<absl::Time>& active = found->second.active;
    const absl::Time until = absl::FromUnixMicros(one.until_unix_us);
    if (active.empty() || active.back() < until) active.push_back(until);
  }
  for (auto it = known_.begin(); it != known_.end();) {
    const bool stays = it->second.is_open || IsActive(it->second, now);
    it = stays ? std::next(it) : known_.erase(it);
  }
  told_ = true;
}

bool Neighbours::IsActive(const Neighbour& neighbour, absl::Time now) const {
  if (!activity_is_known_ && neighbour.is_open) return true;
  return !neighbour.active.empty() && now - neighbour.active.back() < lag_;
}

bool Neighbours::Disturb(absl::Time now) const {
  return std::any_of(known_.begin(), known_.end(), [&](const auto& entry) {
    return IsActive(entry.second, now);
  });
}

absl::Time Neighbours::FirstActive(absl::Time since) const {
  absl::Time first = absl::InfiniteFuture();
  for (const auto& [pid, neighbour] : known_) {
    for (const absl::Time active : neighbour.active) {
      if (active > since) first = std::min(first, active);
    }
  }
  return first;
}

NeighbourNames Neighbours::Names(absl::Time now) const {
  NeighbourNames names;
  for (const auto& [pid, neighbour] : known_) {
    std::string& those = IsActive(neighbour, now) ? names.active : names.idle;
    absl::StrAppend(&those, those.empty() ? "" : ", ", neighbour.name);
  }
  return names;
}

}  // namespace optrail::ops::cuda
