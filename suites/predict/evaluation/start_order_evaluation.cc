// Measures what it brings to tune a workload in the order of StartOrder, on the
// recorded sessions of a history:
//
//   bazel run //suites/predict/evaluation:start_order_evaluation --
//       --history=$PWD/docs/history --first_seed=1
//
// A workload is drawn from the tasks that one hardware tuned: --tasks of them
// in a random order, each with 1 to --most_calls calls. The predictor learns
// from all other sessions of the history, so that no task of the workload was
// ever tuned before.
//
// One by one: a task takes the time of its recorded session, and then a run of
// the workload takes less by what its proof says. The score is the area under
// the curve of what is saved over the time of tuning, as a share of the best
// order's (by what was really saved per second). Orders: as listed, by the
// predicted time alone, and by StartOrder.

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "suites/predict/predict.h"
#include "suites/predict/start_order.h"
#include "tracker/history/history.h"

ABSL_FLAG(std::string, history, "docs/history", "Folder of runs and sessions.");
ABSL_FLAG(int, tasks, 12, "Tasks of a workload.");
ABSL_FLAG(double, most_calls, 100, "Calls are drawn from 1 to this, in ratio.");
ABSL_FLAG(int, workloads, 200, "Workloads for each hardware.");
ABSL_FLAG(uint64_t, first_seed, 1, "Seed of the first draw.");

namespace optrail::suites {
namespace {

// A session as it happened.
struct Recorded {
  tracker::SessionInfo info;
  double default_ns = 0;
  double seconds = 0;
  double gain = 0;

  double SavedNs() const { return default_ns * gain; }
};

struct Workload {
  std::vector<const Recorded*> recorded;
  std::vector<StartTask> tasks;
};

// The area under what is saved, over seconds.
double Area(const Workload& workload, const std::vector<int>& order) {
  double left = 0, area = 0;
  for (const Recorded* one : workload.recorded) left += one->seconds;
  for (const int task : order) {
    left -= workload.recorded[task]->seconds;
    area +=
        workload.tasks[task].calls * workload.recorded[task]->SavedNs() * left;
  }
  return area;
}

std::vector<int> Sorted(const Workload& workload,
                        const std::vector<double>& value) {
  std::vector<int> order(workload.tasks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return value[a] > value[b]; });
  return order;
}

struct Sums {
  double listed = 0, by_time = 0, predicted = 0, better = 0, count = 0;
};

void AddWorkload(const std::vector<tracker::SessionInfo>& sessions,
                 const Workload& workload, Sums& sums) {
  std::set<std::string> drawn;
  for (const Recorded* one : workload.recorded) {
    drawn.insert(GainPredictor::NameOf(one->info.header.task()));
  }
  std::vector<tracker::SessionInfo> others;
  for (const tracker::SessionInfo& session : sessions) {
    if (drawn.count(GainPredictor::NameOf(session.header.task())) == 0) {
      others.push_back(session);
    }
  }
  const GainPredictor predictor(others, WorkOf);
  const std::vector<Start> start = StartOrder(predictor, workload.tasks);
  const size_t count = workload.tasks.size();
  std::vector<int> listed(count), order;
  std::iota(listed.begin(), listed.end(), 0);
  std::vector<double> saved(count), time(count);
  for (const Start& one : start) {
    order.push_back(one.task);
    if (!one.known()) continue;
    time[one.task] = workload.tasks[one.task].calls * one.call_ns;
  }
  for (size_t i = 0; i < count; ++i) {
    const Recorded& one = *workload.recorded[i];
    saved[i] = workload.tasks[i].calls * one.SavedNs() / one.seconds;
  }
  const double best = Area(workload, Sorted(workload, saved));
  if (best <= 0) return;
  const double as_listed = Area(workload, listed) / best;
  const double by_order = Area(workload, order) / best;
  sums.listed += as_listed;
  sums.predicted += by_order;
  sums.by_time += Area(workload, Sorted(workload, time)) / best;
  sums.better += by_order > as_listed ? 1 : by_order == as_listed ? .5 : 0;
  sums.count += 1;
}

void Print(const std::string& hardware, size_t tasks, const Sums& sums) {
  std::cout << absl::StrFormat(
      "%-28s %3d tasks, %.0f workloads  one by one: listed %.2f  by time %.2f  "
      "predicted %.2f, better than listed in %.0f%%\n",
      hardware, tasks, sums.count, sums.listed / sums.count,
      sums.by_time / sums.count, sums.predicted / sums.count,
      100 * sums.better / sums.count);
}

// The newest usable session of each task, by hardware and kind of device.
std::map<std::string, std::vector<Recorded>> ReadRecorded(
    const std::vector<tracker::SessionInfo>& sessions) {
  std::map<std::string, std::vector<Recorded>> by_hardware;
  std::set<std::string> seen;
  for (auto info = sessions.rbegin(); info != sessions.rend(); ++info) {
    const GainPredictor alone({*info});
    const proto::Task& task = info->header.task();
    const absl::optional<double> gain = alone.Realised(task);
    const absl::optional<GainPredictor::CallTime> time = alone.TimeOf(task);
    if (!gain.has_value() || !time.has_value() ||
        info->header.elapsed_ns() <= 0 ||
        !seen.insert(GainPredictor::NameOf(task)).second) {
      continue;
    }
    Recorded one;
    one.info = *info;
    one.gain = *gain;
    one.default_ns = time->ns;
    one.seconds = static_cast<double>(info->header.elapsed_ns()) / 1e9;
    by_hardware[task.hardware_id()].push_back(std::move(one));
  }
  return by_hardware;
}

absl::StatusOr<int> Run() {
  OPTRAIL_ASSIGN_OR_RETURN(
      const tracker::History history,
      tracker::History::Open(absl::GetFlag(FLAGS_history)));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::SessionList list,
                           history.ListSessions());
  const auto by_hardware = ReadRecorded(list.sessions);
  const auto most = static_cast<size_t>(absl::GetFlag(FLAGS_tasks));
  for (const auto& [hardware, recorded] : by_hardware) {
    if (recorded.size() <= most) {
      std::cout << hardware << ": " << recorded.size() << " tasks, too few\n";
      continue;
    }
    Rng rng(absl::GetFlag(FLAGS_first_seed));
    Sums sums;
    for (int i = 0; i < absl::GetFlag(FLAGS_workloads); ++i) {
      std::vector<int> picked(recorded.size());
      std::iota(picked.begin(), picked.end(), 0);
      Workload workload;
      for (size_t k = 0; k < most; ++k) {
        std::swap(picked[k], picked[k + rng.UniformInt(picked.size() - k)]);
        const Recorded& one = recorded[picked[k]];
        workload.recorded.push_back(&one);
        StartTask task;
        task.task = one.info.header.task();
        task.calls =
            std::pow(absl::GetFlag(FLAGS_most_calls), rng.UniformReal());
        workload.tasks.push_back(task);
      }
      AddWorkload(list.sessions, workload, sums);
    }
    Print(hardware, recorded.size(), sums);
  }
  return 0;
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const auto code = optrail::suites::Run();
  if (!code.ok()) std::cerr << code.status() << "\n";
  return code.ok() ? *code : 2;
}
