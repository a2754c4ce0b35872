#include "ops/device/cpu/witnesses.h"

#include <unistd.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace optrail::ops {
namespace {

absl::optional<int64_t> NumberAt(absl::string_view text, size_t field) {
  const std::vector<absl::string_view> fields =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  int64_t value;
  if (fields.size() <= field || !absl::SimpleAtoi(fields[field], &value)) {
    return absl::nullopt;
  }
  return value;
}

}  // namespace

absl::optional<int64_t> ParseRunDelayNs(absl::string_view schedstat) {
  return NumberAt(schedstat, 1);
}

absl::optional<int64_t> ParseRunTimeNs(absl::string_view schedstat) {
  return NumberAt(schedstat, 0);
}

std::map<int, int64_t> ParseStealTicks(absl::string_view stat) {
  // "cpu3 user nice system idle iowait irq softirq steal ...", after a line
  // "cpu" that holds the sums.
  std::map<int, int64_t> ticks;
  for (const absl::string_view line : absl::StrSplit(stat, '\n')) {
    if (!absl::StartsWith(line, "cpu")) break;
    int cpu;
    if (!absl::SimpleAtoi(line.substr(3, line.find(' ') - 3), &cpu)) continue;
    if (const auto steal = NumberAt(line, 8); steal.has_value()) {
      ticks[cpu] = *steal;
    }
  }
  return ticks;
}

absl::optional<int> ParseProcessor(absl::string_view task_stat) {
  // The second field is a name in parentheses, which may hold anything; the
  // 39th is the core.
  const size_t name_end = task_stat.rfind(')');
  if (name_end == absl::string_view::npos) return absl::nullopt;
  const auto processor = NumberAt(task_stat.substr(name_end + 1), 36);
  if (!processor.has_value()) return absl::nullopt;
  return static_cast<int>(*processor);
}

double TickNs() { return 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK)); }

}  // namespace optrail::ops
