#include "ops/device/cpu/page_trace.h"

#include <signal.h>
#include <sys/mman.h>

namespace optrail::ops {
namespace {

constexpr size_t kPage = 4096;
constexpr int kMostRegions = 24;

// The signal handler works on plain data; nothing is allocated.
struct Region {
  char* begin = nullptr;
  size_t bytes = 0;
  char* open[PageTrace::kOpenPages] = {};
  int next = 0;
  int64_t visits = 0, regular = 0, adjacent = 0, distinct = 0;
  int64_t last_page = 0;
  int64_t steps[PageTrace::kRecentSteps] = {};  // a ring of the last distances
  uint8_t* seen = nullptr;                      // one byte a page
  bool complete = true;
};

Region the_regions[kMostRegions];
int the_count = 0;
struct sigaction the_former_action;

// Beyond the first visit a distance is never 0: the last page is open.
bool IsRecent(const Region& region, int64_t step) {
  for (const int64_t recent : region.steps) {
    if (recent == step) return true;
  }
  return false;
}

void Visit(Region& region, char* page) {
  char*& slot = region.open[region.next];
  if (slot != nullptr) mprotect(slot, kPage, PROT_NONE);
  slot = page;
  region.next = (region.next + 1) % PageTrace::kOpenPages;
  mprotect(page, kPage, PROT_READ | PROT_WRITE);
  const auto number = static_cast<int64_t>((page - region.begin) / kPage);
  const int64_t step = number - region.last_page;
  if (IsRecent(region, step)) ++region.regular;
  if (step == 1 || step == -1) ++region.adjacent;
  region.steps[region.visits % PageTrace::kRecentSteps] = step;
  region.last_page = number;
  ++region.visits;
  if (region.seen[number] == 0) {
    region.seen[number] = 1;
    ++region.distinct;
  }
  const auto pages = static_cast<int64_t>(region.bytes / kPage);
  if (region.visits < PageTrace::kMostVisits && region.visits < 64 * pages) {
    return;
  }
  region.complete = false;
  mprotect(region.begin, region.bytes, PROT_READ | PROT_WRITE);
}

void OnFault(int, siginfo_t* info, void*) {
  auto* const address = static_cast<char*>(info->si_addr);
  for (int i = 0; i < the_count; ++i) {
    Region& region = the_regions[i];
    if (address < region.begin || address >= region.begin + region.bytes) {
      continue;
    }
    Visit(region, address - reinterpret_cast<uintptr_t>(address) % kPage);
    return;
  }
  // Somebody else's fault: it happens again, and ends as it would have.
  sigaction(SIGSEGV, &the_former_action, nullptr);
}

}  // namespace

int PageTrace::Add(void* begin, size_t bytes) {
  if (regions_.size() == kMostRegions) return -1;
  regions_.emplace_back(static_cast<char*>(begin), bytes);
  return static_cast<int>(regions_.size()) - 1;
}

void PageTrace::Watch(absl::FunctionRef<void()> run) {
  std::vector<std::vector<uint8_t>> seen;
  for (const auto& [begin, bytes] : regions_) seen.emplace_back(bytes / kPage);
  the_count = 0;
  for (size_t i = 0; i < regions_.size(); ++i) {
    Region& region = the_regions[the_count++];
    region = Region();
    region.begin = regions_[i].first;
    region.bytes = regions_[i].second;
    region.seen = seen[i].data();
  }
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &the_former_action);
  for (const auto& [begin, bytes] : regions_) {
    mprotect(begin, bytes, PROT_NONE);
  }
  run();
  for (const auto& [begin, bytes] : regions_) {
    mprotect(begin, bytes, PROT_READ | PROT_WRITE);
  }
  sigaction(SIGSEGV, &the_former_action, nullptr);
}

int64_t PageTrace::pages(int region) const {
  return static_cast<int64_t>(the_regions[region].bytes / kPage);
}
int64_t PageTrace::visits(int region) const {
  return the_regions[region].visits;
}
int64_t PageTrace::regular(int region) const {
  return the_regions[region].regular;
}
int64_t PageTrace::adjacent(int region) const {
  return the_regions[region].adjacent;
}
int64_t PageTrace::distinct(int region) const {
  return the_regions[region].distinct;
}
bool PageTrace::complete(int region) const {
  return the_regions[region].complete;
}

}  // namespace optrail::ops
