#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "diagnosis/experiments.h"
#include "tuning/proto/roofline.h"

namespace optrail::diagnosis {
namespace {

// A machine that hides its caches does not tell which level holds operands
// that are smaller than the buffer of its memory's ceiling. Returns "" where
// the level is known.
std::string WhyLevelUnknown(const proto::Task& task, const Machine& machine,
                            double hot_bytes) {
  // Rates that show an L2 show whether there is an L3, too.
  const bool hidden =
      !machine.ceilings.has_l2_bytes_seen() &&
      (machine.hardware.l2_bytes() == 0 || machine.hardware.l3_bytes() == 0);
  if (task.device_kind() != proto::CPU || !hidden || hot_bytes <= 0 ||
      hot_bytes >=
          static_cast<double>(machine.ceilings.memory_buffer_bytes())) {
    return "";
  }
  return absl::StrFormat(
      "this machine hides its caches: %.0f KiB may live in any level",
      hot_bytes / 1024);
}

// A share of a ceiling, which repeats within 5%: machines measure ceilings
// again only where they rise by more.
Number OfCeiling(double share) {
  constexpr double kRepeats = .05;
  return {share, share / (1 + kRepeats), share * (1 + kRepeats)};
}

}  // namespace

void AddRoofline(const suites::TaskEntry& entry, const Machine& machine,
                 double time_ns, Numbers* numbers) {
  const proto::Task& task = entry.task;
  const double flop = entry.entry->op->Flop(task.shape());
  const double bytes = entry.entry->op->MovedBytes(task.shape());
  numbers->Set("working_set_kib", bytes / 1024, "operands");
  const proto::Ceilings& ceilings = machine.ceilings;
  if (ceilings.flop_per_s_one_thread() > 0) {
    const double flop_ns =
        flop /
        (ceilings.flop_per_s_one_thread() * std::max(task.threads(), 1)) * 1e9;
    numbers->Set("arithmetic_share", OfCeiling(flop_ns / time_ns),
                 "FLOP at the measured peak");
  }
  const bool hot = task.cache_mode() == proto::HOT;
  const std::string unknown = WhyLevelUnknown(task, machine, hot ? bytes : 0);
  if (!unknown.empty()) {
    numbers->SetUnsupported("roofline_share", unknown);
    return;
  }
  const auto roofline_of = [&](double flop_or_none) {
    return tuning::RooflineOf(flop_or_none, bytes, hot ? bytes : 0,
                              machine.hardware, ceilings, task.threads(),
                              machine.hardware.cores());
  };
  const tuning::Roofline roofline = roofline_of(flop);
  if (roofline.time_ns <= 0) {
    numbers->SetUnsupported("roofline_share",
                            "a ceiling of this device is not known");
    return;
  }
  const absl::string_view level = roofline.level;
  numbers->Set("level_l2", level == "L2", "roofline");
  numbers->Set("level_l3", level == "L3", "roofline");
  numbers->Set("level_dram", level == "memory", "roofline");
  numbers->Set("roofline_share", roofline.time_ns / time_ns,
               "measured ceilings");
  // The memory term alone.
  const double streaming = roofline_of(0).time_ns / time_ns;
  numbers->Set("streaming_share", OfCeiling(streaming),
               "operands at the measured bandwidth of their level");
  if (task.device_kind() != proto::CUDA || level != "memory") return;
  // The roofline is a bound, so it takes a cache to keep as much as it holds.
  // A call that touches more than that evicts most of it before the next call.
  const double from_memory =
      tuning::RooflineOf(0, bytes, /*working_set_bytes=*/0, machine.hardware,
                         ceilings, task.threads(), machine.hardware.cores())
          .time_ns /
      time_ns;
  numbers->Set(
      "from_memory_share",
      {from_memory, OfCeiling(streaming).low, OfCeiling(from_memory).high},
      "operands at the measured bandwidth of memory; the lower end "
      "takes the L2 to be full of them");
}

}  // namespace optrail::diagnosis
