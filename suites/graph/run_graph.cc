#include "suites/graph/run_graph.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "graph/reference/npz.h"
#include "graph/reference/reference.h"
#include "graph/runner/runner.h"
#include "ops/device/cpu/device.h"
#include "suites/stopwatch/stopwatch.h"

namespace optrail::suites {
namespace {

using graph::Array;

// A whole graph, or one of its steps, for a timer.
class GraphInvocation : public ops::Invocation {
 public:
  GraphInvocation(graph::Runner& runner, int step)
      : runner_(runner), step_(step) {}

  void Run(absl::Span<void* const> operands) override {
    const absl::Status status =
        step_ < 0 ? runner_.Run() : runner_.RunStep(step_);
    if (!status.ok()) error_ = status;
  }
  const absl::Status& error() const { return error_; }

 private:
  graph::Runner& runner_;
  const int step_;  // -1: all
  absl::Status error_;
};

// The runner keeps its operands itself.
class NoOperands : public ops::OperandSets {
 public:
  absl::Span<void* const> addresses(int set) const override { return {}; }
  absl::Span<const int64_t> bytes() const override { return {}; }
  int sets() const override { return 1; }
  bool has_in_out() const override { return false; }
  absl::Status Restore() override { return absl::OkStatus(); }
};

// Per call; nothing where the machine was too busy.
absl::StatusOr<std::optional<double>> TimeNs(graph::Runner& runner, int step,
                                             ops::CpuDevice& device,
                                             absl::Duration most) {
  GraphInvocation invocation(runner, step);
  NoOperands operands;
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<ops::Timer> timer,
                           device.MakeTimer(invocation, operands, {}));
  const std::unique_ptr<ops::Monitor> monitor = device.MakeMonitor();
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_max_time_ns(absl::ToInt64Nanoseconds(most));
  OPTRAIL_ASSIGN_OR_RETURN(const Sampling sampling,
                           TakeSamples(options, *timer, *monitor));
  OPTRAIL_RETURN_IF_ERROR(invocation.error());
  if (sampling.outcome != proto::OK) return std::optional<double>();
  return std::optional<double>(sampling.time_ns);
}

absl::StatusOr<std::vector<Array>> InputsOf(const GraphRunCommand& command,
                                            const graph::Graph& graph) {
  std::vector<Array> inputs;
  if (command.data.empty()) {
    const std::vector<int64_t> limits = graph::IndexLimits(graph);
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      inputs.push_back(graph::RandomInput(graph.type(graph.inputs[i]),
                                          command.import.seed + i, limits[i]));
    }
    return inputs;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const graph::NamedArrays arrays,
                           graph::ReadNpz(command.data));
  for (const int input : graph.inputs) {
    const std::string& name = graph.values[input].name;
    const auto found = arrays.find(name);
    if (found == arrays.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          command.data, ": has no array \"", absl::CEscape(name), "\""));
    }
    inputs.push_back(found->second);
  }
  return inputs;
}

// Multiplications and additions of products and convolutions.
double Flop(const graph::Graph& graph) {
  double flop = 0;
  for (const graph::Node& node : graph.nodes) {
    if (node.op != "matmul" && node.op != "linear" && node.op != "conv") {
      continue;
    }
    const graph::Dims& w = graph.type(node.inputs[1]).dims;
    double depth = 1;
    if (node.op == "conv") {
      for (size_t d = 1; d < w.size(); ++d) depth *= static_cast<double>(w[d]);
    } else {
      depth = static_cast<double>(graph.type(node.inputs[0]).dims.back());
    }
    flop +=
        2 * depth *
        static_cast<double>(graph::Elements(graph.type(node.outputs[0]).dims));
  }
  return flop;
}

using Pair = std::pair<double, double>;

// Both per call, sampled in turns, since the machine changes meanwhile.
absl::StatusOr<std::optional<Pair>> TimeInTurns(graph::Runner& one,
                                                graph::Runner& other,
                                                ops::CpuDevice& device) {
  GraphInvocation first(one, -1), second(other, -1);
  NoOperands operands;
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<ops::Timer> a,
                           device.MakeTimer(first, operands, {}));
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<ops::Timer> b,
                           device.MakeTimer(second, operands, {}));
  const std::unique_ptr<ops::Monitor> monitor = device.MakeMonitor();
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_max_time_ns(absl::ToInt64Nanoseconds(absl::Seconds(20)));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<Sampling> samplings,
      TakeSamplesInTurns(options, {a.get(), b.get()}, *monitor));
  OPTRAIL_RETURN_IF_ERROR(first.error());
  OPTRAIL_RETURN_IF_ERROR(second.error());
  for (const Sampling& sampling : samplings) {
    if (sampling.outcome != proto::OK) return std::optional<Pair>();
  }
  return std::optional<Pair>({samplings[0].time_ns, samplings[1].time_ns});
}

struct Timed {
  std::optional<double> whole_ns;
  std::vector<double> steps_ns;
};

absl::StatusOr<Timed> TimeAll(graph::Runner& runner, ops::CpuDevice& device) {
  Timed timed;
  OPTRAIL_ASSIGN_OR_RETURN(timed.whole_ns,
                           TimeNs(runner, -1, device, absl::Seconds(10)));
  for (size_t s = 0; s < runner.steps().size(); ++s) {
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::optional<double> ns,
        TimeNs(runner, static_cast<int>(s), device, absl::Milliseconds(20)));
    timed.steps_ns.push_back(ns.value_or(0));
  }
  return timed;
}

Table StepsTable(const graph::Runner& runner, const Timed& timed) {
  const double all =
      std::accumulate(timed.steps_ns.begin(), timed.steps_ns.end(), 0.0);
  std::vector<int> order(timed.steps_ns.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return timed.steps_ns[a] > timed.steps_ns[b];
  });
  Table table({{"node", Align::kLeft, "node", Clip::kMay},
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

std::string KernelsText(const graph::Runner& runner, const Timed& timed) {
  std::map<std::string, std::pair<int, double>> kernels;
  double all = 0;
  for (size_t s = 0; s < runner.steps().size(); ++s) {
    auto& [count, ns] = kernels[runner.steps()[s].kernel];
    ++count;
    ns += timed.steps_ns[s];
    all += timed.steps_ns[s];
  }
  std::string text;
  for (const auto& [kernel, of] : kernels) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", of.first, " ", kernel,
                    " (", FormatPercent(all == 0 ? 0 : of.second / all), ")");
  }
  return text;
}

void PrintWhole(const graph::Runner& runner, const Timed& timed, double flop,
                int threads, std::ostream& out) {
  const double sum =
      std::accumulate(timed.steps_ns.begin(), timed.steps_ns.end(), 0.0);
  out << "steps: " << KernelsText(runner, timed) << "\n";
  out << "end to end: ";
  if (timed.whole_ns.has_value()) {
    out << FormatDurationNs(*timed.whole_ns) << " on " << threads
        << (threads == 1 ? " thread" : " threads") << " ("
        << FormatRate(flop / *timed.whole_ns * 1e9, "FLOP/s")
        << "); its steps alone: " << FormatDurationNs(sum) << "\n";
  } else {
    out << "can't tell, the machine was too busy\n";
  }
  out << "memory: arena "
      << FormatBytes(static_cast<double>(runner.plan().arena_bytes)) << " ("
      << graph::PlanProofName(runner.plan().proof) << "; without a plan "
      << FormatBytes(static_cast<double>(runner.unplanned_bytes()))
      << "), constants and inputs "
      << FormatBytes(static_cast<double>(runner.constant_bytes())) << "\n";
}

void PrintFusion(const graph::FusionReport& report, std::ostream& out) {
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const graph::FusionDecision& decision : report) {
    ++counts[{decision.rule, decision.why_not}];
  }
  for (const auto& [what, count] : counts) {
    out << "fusion: " << what.first << ", " << count << " times"
        << (what.second.empty() ? "" : " not fused: ") << what.second << "\n";
  }
}

absl::Status PrintComparison(const GraphRunCommand& command,
                             const graph::Graph& graph,
                             const std::vector<Array>& inputs,
                             const graph::RunnerOptions& options,
                             graph::Runner& fused, ops::CpuDevice& device,
                             std::ostream& out) {
  graph::RunnerOptions without = options;
  without.fuse = false;
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<graph::Runner> unfused,
                           graph::Runner::Create(graph, device, without));
  OPTRAIL_RETURN_IF_ERROR(unfused->SetInputs(inputs));
  OPTRAIL_ASSIGN_OR_RETURN(const std::optional<Pair> times,
                           TimeInTurns(*unfused, fused, device));
  out << "unfused in turns with fused: ";
  if (times.has_value()) {
    out << FormatDurationNs(times->first) << " and "
        << FormatDurationNs(times->second) << ", "
        << absl::StrFormat("%.3f", times->first / times->second) << "x\n";
  } else {
    out << "can't tell, the machine was too busy\n";
  }
  return absl::OkStatus();
}

// Nothing where the check was left out.
absl::StatusOr<std::optional<bool>> Check(const GraphRunCommand& command,
                                          const graph::Graph& graph,
                                          const std::vector<Array>& inputs,
                                          graph::Runner& runner, double flop,
                                          std::ostream& out) {
  const bool tells = command.format == OutputFormat::kTable;
  if (flop > command.most_checked_flop) {
    if (tells) {
      out << "not checked: the reference would compute "
          << absl::StrFormat("%.3g", flop)
          << " FLOP in double precision; next: --check_flop="
          << absl::StrFormat("%.3g", flop * 1.01) << "\n";
    }
    return std::optional<bool>();
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> ours, runner.Outputs());
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> expected,
                           graph::RunReference(graph, inputs));
  bool all = true;
  for (size_t i = 0; i < ours.size(); ++i) {
    const graph::Difference difference = graph::Compare(ours[i], expected[i]);
    const bool same =
        difference.problem.empty() && difference.relative <= command.tolerance;
    all = all && same;
    if (!tells) continue;
    out << "output " << absl::CEscape(graph.values[graph.outputs[i]].name)
        << (same ? " matches the reference: " : " DIFFERS: ")
        << absl::StrFormat("%.2g", difference.relative)
        << " of the largest value " << difference.problem << "\n";
  }
  return std::optional<bool>(all);
}

}  // namespace

bool AbslParseFlag(absl::string_view text, FusionMode* mode,
                   std::string* error) {
  for (const FusionMode known :
       {FusionMode::kOn, FusionMode::kOff, FusionMode::kCompare}) {
    if (text != AbslUnparseFlag(known)) continue;
    *mode = known;
    return true;
  }
  *error = "expected on, off or compare";
  return false;
}

std::string AbslUnparseFlag(FusionMode mode) {
  return mode == FusionMode::kOn    ? "on"
         : mode == FusionMode::kOff ? "off"
                                    : "compare";
}

absl::StatusOr<ExitCode> RunGraph(const GraphRunCommand& command,
                                  std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const graph::Imported imported,
                           graph::ImportOnnx(command.path, command.import));
  const graph::Graph& graph = imported.graph;
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<ops::CpuDevice> device,
                           ops::MakeCpuDevice(command.threads));
  graph::RunnerOptions options;
  options.compile_cache = command.compile_cache;
  options.fuse = command.fusion != FusionMode::kOff;
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<graph::Runner> runner,
                           graph::Runner::Create(graph, *device, options));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> inputs,
                           InputsOf(command, graph));
  OPTRAIL_RETURN_IF_ERROR(runner->SetInputs(inputs));
  OPTRAIL_RETURN_IF_ERROR(runner->Run());
  const double flop = Flop(graph);
  OPTRAIL_ASSIGN_OR_RETURN(const std::optional<bool> same,
                           Check(command, graph, inputs, *runner, flop, out));
  OPTRAIL_ASSIGN_OR_RETURN(const Timed timed, TimeAll(*runner, *device));
  out << StepsTable(*runner, timed).Format(command.format, TerminalWidth());
  if (command.format == OutputFormat::kTable) {
    PrintWhole(*runner, timed, flop, command.threads, out);
    PrintFusion(runner->fusion(), out);
    if (command.fusion == FusionMode::kCompare) {
      OPTRAIL_RETURN_IF_ERROR(PrintComparison(command, graph, inputs, options,
                                              *runner, *device, out));
    }
    if (!imported.uncovered.empty()) {
      out << imported.uncovered.size()
          << " nodes are not covered; next: optrail graph show " << command.path
          << "\n";
    }
  }
  if (same.has_value() && !*same) return ExitCode::kCheckFailed;
  return timed.whole_ns.has_value() ? ExitCode::kOk : ExitCode::kNotEnoughData;
}

}  // namespace optrail::suites
