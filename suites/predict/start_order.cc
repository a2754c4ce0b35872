#include "suites/predict/start_order.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/units.h"
#include "ops/core/registry.h"
#include "suites/workload/tasks.h"

namespace optrail::suites {
namespace {

// FLOP that take as long as a byte from memory, on CPUs and GPUs alike within a
// factor of two or three.
constexpr double kFlopPerByte = 10;

constexpr size_t kMostLines = 10;

bool Known(const Start& start) { return start.known(); }

}  // namespace

double WorkOf(const proto::Task& task) {
  const ops::OperatorEntry* entry =
      ops::Registry::Get().Find(task.operator_name());
  if (entry == nullptr || !ops::CheckShape(*entry->op, task.shape()).ok())
    return 0;
  return entry->op->MovedBytes(task.shape()) +
         entry->op->Flop(task.shape()) / kFlopPerByte;
}

std::vector<Start> StartOrder(const GainPredictor& predictor,
                              const std::vector<StartTask>& tasks) {
  std::vector<Start> order;
  for (size_t i = 0; i < tasks.size(); ++i) {
    Start start;
    start.task = static_cast<int>(i);
    const absl::optional<GainPredictor::CallTime> call =
        predictor.TimeOf(tasks[i].task);
    const absl::optional<Prediction> prediction = predictor.Predict(
        tasks[i].task, call.value_or(GainPredictor::CallTime()));
    if (call.has_value() && prediction.has_value() && prediction->seconds > 0) {
      start.prediction = prediction;
      start.call_ns = call->ns;
      start.saved_ns = tasks[i].calls * call->ns * prediction->gain;
      start.saved_ns_per_second = start.saved_ns / prediction->seconds;
    }
    order.push_back(std::move(start));
  }
  const auto unknown = std::stable_partition(order.begin(), order.end(), Known);
  std::stable_sort(order.begin(), unknown, [](const Start& a, const Start& b) {
    return a.saved_ns_per_second > b.saved_ns_per_second;
  });
  return order;
}

std::string StartOrderText(const std::vector<StartTask>& tasks,
                           const std::vector<Start>& order) {
  if (std::none_of(order.begin(), order.end(), Known)) return "";
  std::string text =
      "order of tuning: what a run is expected to save, per second of tuning\n";
  for (size_t i = 0; i < std::min(order.size(), kMostLines); ++i) {
    const Start& start = order[i];
    const StartTask& task = tasks[start.task];
    absl::StrAppend(&text, "  ", i + 1, ". ", ShortTaskText(task.task), ": ");
    if (!start.known()) {
      absl::StrAppend(&text, "nothing is known of it\n");
      continue;
    }
    absl::StrAppend(&text, FormatDurationNs(start.saved_ns), " (",
                    FormatPercent(start.prediction->gain), " faster) of ",
                    FormatDurationNs(task.calls * start.call_ns), ", after ",
                    FormatDurationNs(start.prediction->seconds * 1e9), "\n");
  }
  if (order.size() > kMostLines) {
    absl::StrAppend(&text, "  and ", order.size() - kMostLines, " more\n");
  }
  return text;
}

}  // namespace optrail::suites
