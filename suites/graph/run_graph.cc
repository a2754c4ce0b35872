#include "suites/graph/run_graph.h"

#include <algorithm>
#include <iostream>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "graph/reference/npz.h"
#include "graph/reference/reference.h"
#include "ops/device/cpu/device.h"
#include "suites/graph/call_timer.h"
#include "suites/graph/measured_fusion.h"
#include "suites/graph/paired_timing.h"
#include "suites/graph/peer.h"
#include "suites/graph/run_report.h"
#include "suites/graph/step_profile.h"
#include "suites/stopwatch/stopwatch.h"

namespace optrail::suites {
namespace {

using graph::Array;

// A graph is timed against these beside peers.
constexpr absl::string_view kUnfused = "unfused", kUntuned = "untuned";

absl::StatusOr<std::unique_ptr<CallTimer>> TimerOf(graph::Runner& runner,
                                                   ops::Device& device) {
  return CallTimer::Create([&](const ops::Call&) { return runner.Run(); },
                           device);
}

absl::StatusOr<Sampling> TimeWhole(graph::Runner& runner, ops::Device& device) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<CallTimer> timer,
                           TimerOf(runner, device));
  const std::unique_ptr<ops::Monitor> monitor = device.MakeMonitor();
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_max_time_ns(absl::ToInt64Nanoseconds(absl::Seconds(10)));
  return TakeSamples(options, timer->get(), *monitor);
}

absl::StatusOr<std::vector<Array>> InputsOf(const GraphRunCommand& command,
                                            const graph::NamedArrays& data,
                                            const graph::Graph& graph) {
  if (command.data.empty()) {
    return graph::SeededInputs(graph, command.import.seed);
  }
  const std::vector<int64_t> bounds = graph::IndexBounds(graph);
  std::vector<Array> inputs;
  for (const int input : graph.inputs) {
    const std::string& name = graph.values[input].name;
    const auto found = data.find(name);
    if (found == data.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          command.data, ": has no array \"", absl::CEscape(name), "\""));
    }
    const absl::Status indices =
        graph::CheckIndices(found->second, bounds[inputs.size()]);
    if (!indices.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(command.data, ": array \"", absl::CEscape(name),
                       "\": ", indices.message()));
    }
    inputs.push_back(found->second);
  }
  return inputs;
}

// The outputs as values of the types that the model says, which are wider than
// those of a graph in bf16.
absl::StatusOr<std::vector<Array>> OutputsOf(graph::Runner& runner,
                                             const graph::Graph& graph) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<Array> outputs, runner.Outputs());
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].type = graph.type(graph.outputs[i]);
  }
  return outputs;
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

// What the reference would take, in FLOP: it keeps every value that it computes
// in memory.
double ReferenceFlop(const graph::Graph& graph) {
  constexpr double kFlopOfAnElement = 20;
  double flop = Flop(graph);
  for (const graph::Node& node : graph.nodes) {
    for (const int output : node.outputs) {
      flop += kFlopOfAnElement *
              static_cast<double>(graph::Elements(graph.type(output).dims));
    }
  }
  return flop;
}

absl::StatusOr<TimedRun> TimeAll(graph::Runner& runner, ops::Device& device) {
  TimedRun timed;
  OPTRAIL_ASSIGN_OR_RETURN(timed.whole, TimeWhole(runner, device));
  OPTRAIL_ASSIGN_OR_RETURN(timed.steps_ns, ProfileSteps(runner, device));
  // Steps that work in place have spoilt what they read.
  OPTRAIL_RETURN_IF_ERROR(runner.Run());
  return timed;
}

absl::Status PrintPairs(absl::string_view name, ops::Timer& other,
                        graph::Runner& ours, ops::Device& device,
                        std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<CallTimer> timer,
                           TimerOf(ours, device));
  PairedTimingOptions options;
  const auto* const cpu = dynamic_cast<const ops::CpuDevice*>(&device);
  options.one_thread = cpu != nullptr && cpu->threads() == 1;
  options.most = absl::Seconds(60);
  OPTRAIL_ASSIGN_OR_RETURN(const PairedTimes times,
                           TimePairs(other, timer->get(), options));
  out << name << " interleaved with this: " << FormatDurationNs(times.first_ns)
      << " and " << FormatDurationNs(times.second_ns)
      << (times.of_processor ? " of processor time, " : ", ")
      << RatioText(times) << "\n";
  return absl::OkStatus();
}

// Says and returns whether `ours` is within the tolerance of what `whose` says
// it is.
bool PrintComparison(const GraphRunCommand& command, const std::string& name,
                     const Array& ours, const Array& expected,
                     absl::string_view whose, std::ostream& out) {
  const graph::Difference difference = graph::Compare(ours, expected);
  const bool same =
      difference.problem.empty() && difference.relative <= command.tolerance;
  if (command.format != OutputFormat::kTable) return same;
  out << "output " << absl::CEscape(name)
      << (same ? " matches " : " DIFFERS from ") << whose << ": "
      << absl::StrFormat("%.2g", difference.relative)
      << " of the largest value (at most "
      << absl::StrFormat("%.2g", command.tolerance) << " by --tolerance)"
      << (difference.problem.empty() ? "" : " ") << difference.problem << "\n";
  return same;
}

// False where the peer computes something else.
absl::StatusOr<bool> PrintPeer(const GraphRunCommand& command,
                               const graph::Graph& graph, graph::Runner& ours,
                               ops::Device& device, std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Peer> peer,
                           Peer::Start(command.against));
  OPTRAIL_RETURN_IF_ERROR(PrintPairs(peer->name(), *peer, ours, device, out));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> outputs,
                           OutputsOf(ours, graph));
  bool all = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string bytes,
                             peer->Output(static_cast<int>(i)));
    OPTRAIL_ASSIGN_OR_RETURN(const Array theirs,
                             Array::Decode(outputs[i].type, bytes));
    all = PrintComparison(command, graph.values[graph.outputs[i]].name,
                          outputs[i], theirs, peer->name(), out) &&
          all;
  }
  return all;
}

// `options` without fusion or without tuned configs, as `command.against` says.
absl::Status PrintOurOther(const GraphRunCommand& command,
                           const graph::Graph& graph,
                           const std::vector<Array>& inputs,
                           graph::RunnerOptions options, graph::Runner& ours,
                           ops::Device& device, std::ostream& out) {
  options.fuse = options.fuse && command.against != kUnfused;
  options.tuned = command.against != kUntuned;
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<graph::Runner> other,
                           graph::Runner::Create(graph, device, options));
  OPTRAIL_RETURN_IF_ERROR(other->SetInputs(inputs));
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<CallTimer> timer,
                           TimerOf(*other, device));
  return PrintPairs(command.against, timer->get(), ours, device, out);
}

// False where what it is timed against computes something else.
absl::StatusOr<bool> PrintAgainst(const GraphRunCommand& command,
                                  const graph::Graph& graph,
                                  const std::vector<Array>& inputs,
                                  const graph::RunnerOptions& options,
                                  graph::Runner& ours, ops::Device& device,
                                  std::ostream& out) {
  if (command.against.empty()) return true;
  if (command.against != kUnfused && command.against != kUntuned) {
    return PrintPeer(command, graph, ours, device, out);
  }
  OPTRAIL_RETURN_IF_ERROR(
      PrintOurOther(command, graph, inputs, options, ours, device, out));
  return true;
}

// Nothing where the check was left out. What the data say of the outputs is
// compared in any case.
absl::StatusOr<std::optional<bool>> Check(const GraphRunCommand& command,
                                          const graph::Graph& graph,
                                          const std::vector<Array>& inputs,
                                          const graph::NamedArrays& data,
                                          graph::Runner& runner, double flop,
                                          std::ostream& out) {
  std::optional<bool> all;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> ours,
                           OutputsOf(runner, graph));
  for (size_t i = 0; i < ours.size(); ++i) {
    const std::string& name = graph.values[graph.outputs[i]].name;
    auto found = data.find(name);
    if (found == data.end() && ours.size() == 1) found = data.find("output");
    if (found == data.end()) continue;
    all = PrintComparison(command, name, ours[i], found->second, "the data",
                          out) &&
          all.value_or(true);
  }
  if (flop > command.most_checked_flop) {
    if (command.format == OutputFormat::kTable) {
      out << "not checked: the reference would compute "
          << absl::StrFormat("%.3g", flop)
          << " FLOP in double precision; next: --check_flop="
          << absl::StrFormat("%.3g", flop * 1.01) << "\n";
    }
    return all;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> expected,
                           graph::RunReference(graph, inputs));
  for (size_t i = 0; i < ours.size(); ++i) {
    all = PrintComparison(command, graph.values[graph.outputs[i]].name, ours[i],
                          expected[i], "the reference", out) &&
          all.value_or(true);
  }
  return all;
}

}  // namespace

absl::StatusOr<ExitCode> RunGraph(const GraphRunCommand& asked,
                                  std::ostream& out) {
  GraphRunCommand command = asked;
  OPTRAIL_ASSIGN_OR_RETURN(const graph::Imported imported,
                           graph::ImportOnnx(command.path, command.import));
  const int64_t started_unix_ns = Clock::Real()->WallNs();
  const graph::Graph& graph = imported.graph;
  // The rest runs, but its time is no result.
  const absl::Status covered = graph::CheckCovered(imported, command.path);
  if (!covered.ok()) {
    std::cerr << "optrail graph: " << covered.message()
              << "; nothing is recorded\n";
    if (graph.outputs.empty()) return ExitCode::kCheckFailed;
    command.record = false;
  }
  // Wrong data are refused before anything is compiled or runs.
  graph::NamedArrays data;
  if (!command.data.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(data, graph::ReadNpz(command.data));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> inputs,
                           InputsOf(command, data, graph));
  OPTRAIL_ASSIGN_OR_RETURN(graph::RunnerOptions options,
                           RunnerOptionsOf(command));
  if (options.type == proto::ELEMENT_BF16) command.tolerance *= kWiderInBf16;
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<ops::Device> device,
                           DeviceOf(command));
  std::unique_ptr<MeasuredFusion> measured;
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<graph::Runner> runner,
      MakeRunner(command, graph, *device, options, measured));
  OPTRAIL_RETURN_IF_ERROR(runner->SetInputs(inputs));
  OPTRAIL_RETURN_IF_ERROR(runner->Run());
  const double flop = Flop(graph);
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::optional<bool> same,
      Check(command, graph, inputs, data, *runner, ReferenceFlop(graph), out));
  OPTRAIL_ASSIGN_OR_RETURN(const TimedRun timed, TimeAll(*runner, *device));
  if (!command.page.empty()) {
    OPTRAIL_RETURN_IF_ERROR(WriteRunPage(command, *runner, timed, flop));
  }
  if (command.record && same.value_or(true)) {
    OPTRAIL_RETURN_IF_ERROR(
        RecordTimedRun(command, *runner, timed, flop, started_unix_ns));
  }
  bool same_as_peer = true;
  out << StepsTable(*runner, timed).Format(command.format, TerminalWidth());
  if (command.format == OutputFormat::kTable) {
    PrintWhole(*runner, timed, flop, command, out);
    PrintFusion(runner->fusion(), out);
    if (measured != nullptr) {
      out << measured->Rows().Format(command.format, TerminalWidth());
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        same_as_peer,
        PrintAgainst(command, graph, inputs, options, *runner, *device, out));
  }
  if (!covered.ok() || !same.value_or(true) || !same_as_peer) {
    return ExitCode::kCheckFailed;
  }
  return timed.is_known() ? ExitCode::kOk : ExitCode::kNotEnoughData;
}

}  // namespace optrail::suites
