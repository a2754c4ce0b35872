#include "suites/graph/run_report.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "suites/graph/graph_page.h"
#include "suites/graph/graph_record.h"

namespace optrail::suites {
namespace {

// How many steps each kernel has, and what they take together.
std::map<std::string, std::pair<int, double>> ByKernel(
    const graph::Runner& runner, const TimedRun& timed) {
  std::map<std::string, std::pair<int, double>> kernels;
  for (size_t s = 0; s < runner.steps().size(); ++s) {
    auto& [count, ns] = kernels[runner.steps()[s].kernel];
    ++count;
    ns += timed.steps_ns[s];
  }
  return kernels;
}

std::string KernelsText(const graph::Runner& runner, const TimedRun& timed) {
  const double all = timed.sum_ns();
  std::string text;
  for (const auto& [kernel, of] : ByKernel(runner, timed)) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", of.first, " ", kernel,
                    " (", FormatPercent(all == 0 ? 0 : of.second / all), ")");
  }
  return text;
}

std::string PlaceText(const GraphRunCommand& command) {
  if (command.device == "cpu") {
    return absl::StrCat(command.threads,
                        command.threads == 1 ? " thread" : " threads");
  }
  return command.type == "f32"
             ? command.device
             : absl::StrCat(command.device, " in ", command.type);
}

// "4.2 ms on 1 thread (12 GFLOP/s)"
std::string EndToEndText(const TimedRun& timed, double flop,
                         const GraphRunCommand& command) {
  if (!timed.is_known()) return "can't tell, the machine was too busy";
  return absl::StrCat(
      FormatDurationNs(timed.whole.time_ns), " on ", PlaceText(command), " (",
      FormatRate(flop / timed.whole.time_ns * 1e9, "FLOP/s"), ")");
}

std::string MemoryText(const graph::Runner& runner) {
  return absl::StrCat(
      "arena ", FormatBytes(static_cast<double>(runner.plan().arena_bytes)),
      " (", graph::PlanProofName(runner.plan().proof), "; without a plan ",
      FormatBytes(static_cast<double>(runner.unplanned_bytes())),
      "; live at once at most ",
      FormatBytes(static_cast<double>(runner.order().after_bytes)),
      runner.order().after_bytes < runner.order().before_bytes
          ? absl::StrCat(
                ", in the order of the file ",
                FormatBytes(static_cast<double>(runner.order().before_bytes)))
          : "",
      "), constants and inputs ",
      FormatBytes(static_cast<double>(runner.constant_bytes())));
}

// How often each rule had each outcome.
std::map<std::pair<std::string, std::string>, int> Outcomes(
    const graph::FusionReport& report) {
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const graph::FusionDecision& decision : report) {
    ++counts[{decision.rule, decision.why_not}];
  }
  return counts;
}

std::string ModelName(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

GraphPage PageOf(const GraphRunCommand& command, const graph::Runner& runner,
                 const TimedRun& timed, double flop) {
  GraphPage page;
  page.title = ModelName(command.path);
  page.facts = {
      absl::StrCat("end to end: ", EndToEndText(timed, flop, command)),
      absl::StrCat("memory: ", MemoryText(runner)),
      absl::StrCat("fusion: ", AbslUnparseFlag(command.fuse))};
  for (size_t s = 0; s < runner.steps().size(); ++s) {
    const graph::RunnerStep& step = runner.steps()[s];
    page.steps.push_back(
        {step.name, step.kernel, step.what, timed.steps_ns[s]});
  }
  for (const auto& [what, count] : Outcomes(runner.fusion())) {
    page.rules.push_back({what.first, count, what.second});
  }
  page.arena_bytes = runner.plan().arena_bytes;
  for (size_t b = 0; b < runner.arena_buffers().size(); ++b) {
    const graph::MemoryBuffer& buffer = runner.arena_buffers()[b];
    page.buffers.push_back({buffer.id, buffer.lower, buffer.upper - 1,
                            runner.plan().offsets[b], buffer.size_bytes});
  }
  return page;
}

}  // namespace

Table StepsTable(const graph::Runner& runner, const TimedRun& timed) {
  const double all = timed.sum_ns();
  std::vector<int> order(timed.steps_ns.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return timed.steps_ns[a] > timed.steps_ns[b];
  });
  Table table({{"node", Align::kLeft, "node", Clip::kFold},
               {"kernel"},
               {"nodes", Align::kRight},
               {"time", Align::kRight, "time_ns"},
               {"share", Align::kRight},
               {"computes", Align::kLeft, "computes"}});
  for (const int s : order) {
    const graph::RunnerStep& step = runner.steps()[s];
    const double ns = timed.steps_ns[s];
    table.AddRow(
        {absl::CEscape(step.name), step.kernel, Cell::Integer(step.nodes),
         ns == 0 ? Cell::None() : Cell::Number(ns, FormatDurationNs(ns)),
         Cell::Number(all == 0 ? 0 : ns / all,
                      FormatPercent(all == 0 ? 0 : ns / all)),
         step.what});
  }
  return table;
}

void PrintWhole(const graph::Runner& runner, const TimedRun& timed, double flop,
                const GraphRunCommand& command, std::ostream& out) {
  out << "steps: " << KernelsText(runner, timed) << "\n"
      << "end to end: " << EndToEndText(timed, flop, command)
      << "; the sum of its steps: " << FormatDurationNs(timed.sum_ns()) << "\n"
      << "memory: " << MemoryText(runner) << "\n";
}

void PrintFusion(const graph::FusionReport& report, std::ostream& out) {
  for (const auto& [what, count] : Outcomes(report)) {
    out << "fusion: " << what.first << ", " << count << " times"
        << (what.second.empty() ? "" : " not fused: ") << what.second << "\n";
  }
}

absl::Status WriteRunPage(const GraphRunCommand& command,
                          const graph::Runner& runner, const TimedRun& timed,
                          double flop) {
  OPTRAIL_RETURN_IF_ERROR(WriteOutput(
      command.page, GraphPageText(PageOf(command, runner, timed, flop))));
  std::cerr << "wrote " << command.page << "\n";
  return absl::OkStatus();
}

absl::Status RecordTimedRun(const GraphRunCommand& command,
                            const graph::Runner& runner, const TimedRun& timed,
                            double flop, int64_t started_unix_ns) {
  MeasuredGraph measured;
  measured.model = ModelName(command.path);
  measured.threads = command.threads;
  measured.device = command.device;
  measured.type = command.type;
  measured.fuse = AbslUnparseFlag(command.fuse);
  measured.started_unix_ns = started_unix_ns;
  measured.whole = timed.whole;
  for (const auto& [kernel, of] : ByKernel(runner, timed)) {
    measured.kernels_ns[kernel] = of.second;
  }
  measured.arena_bytes = runner.plan().arena_bytes;
  measured.flop = flop;
  return RecordGraph(measured, command.history, command.store);
}

}  // namespace optrail::suites
