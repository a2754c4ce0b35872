#include "suites/graph/run_graph.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <numeric>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/cpus.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "base/text/units.h"
#include "graph/reference/npz.h"
#include "graph/reference/reference.h"
#include "ops/core/device_type.h"
#include "ops/device/cpu/device.h"
#include "suites/graph/call_timer.h"
#include "suites/graph/graph_page.h"
#include "suites/graph/graph_record.h"
#include "suites/graph/measured_fusion.h"
#include "suites/graph/paired_timing.h"
#include "suites/graph/peer.h"
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

struct Timed {
  Sampling whole;
  std::vector<double> steps_ns;

  double sum_ns() const {
    return std::accumulate(steps_ns.begin(), steps_ns.end(), 0.0);
  }
  bool is_known() const { return whole.outcome == proto::OK; }
};

absl::StatusOr<Timed> TimeAll(graph::Runner& runner, ops::Device& device) {
  Timed timed;
  OPTRAIL_ASSIGN_OR_RETURN(timed.whole, TimeWhole(runner, device));
  OPTRAIL_ASSIGN_OR_RETURN(timed.steps_ns, ProfileSteps(runner, device));
  // Steps that work in place have spoilt what they read.
  OPTRAIL_RETURN_IF_ERROR(runner.Run());
  return timed;
}

Table StepsTable(const graph::Runner& runner, const Timed& timed) {
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

// How many steps each kernel has, and what they take together.
std::map<std::string, std::pair<int, double>> ByKernel(
    const graph::Runner& runner, const Timed& timed) {
  std::map<std::string, std::pair<int, double>> kernels;
  for (size_t s = 0; s < runner.steps().size(); ++s) {
    auto& [count, ns] = kernels[runner.steps()[s].kernel];
    ++count;
    ns += timed.steps_ns[s];
  }
  return kernels;
}

std::string KernelsText(const graph::Runner& runner, const Timed& timed) {
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
std::string EndToEndText(const Timed& timed, double flop,
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

void PrintWhole(const graph::Runner& runner, const Timed& timed, double flop,
                const GraphRunCommand& command, std::ostream& out) {
  out << "steps: " << KernelsText(runner, timed) << "\n"
      << "end to end: " << EndToEndText(timed, flop, command)
      << "; the sum of its steps: " << FormatDurationNs(timed.sum_ns()) << "\n"
      << "memory: " << MemoryText(runner) << "\n";
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

void PrintFusion(const graph::FusionReport& report, std::ostream& out) {
  for (const auto& [what, count] : Outcomes(report)) {
    out << "fusion: " << what.first << ", " << count << " times"
        << (what.second.empty() ? "" : " not fused: ") << what.second << "\n";
  }
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

std::string ModelName(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

GraphPage PageOf(const GraphRunCommand& command, const graph::Runner& runner,
                 const Timed& timed, double flop) {
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

absl::Status WritePage(const GraphRunCommand& command,
                       const graph::Runner& runner, const Timed& timed,
                       double flop) {
  OPTRAIL_RETURN_IF_ERROR(WriteOutput(
      command.page, GraphPageText(PageOf(command, runner, timed, flop))));
  std::cerr << "wrote " << command.page << "\n";
  return absl::OkStatus();
}

absl::Status Record(const GraphRunCommand& command, const graph::Runner& runner,
                    const Timed& timed, double flop, int64_t started_unix_ns) {
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

}  // namespace

bool AbslParseFlag(absl::string_view text, FuseMode* mode, std::string* error) {
  for (const FuseMode known :
       {FuseMode::kRules, FuseMode::kNone, FuseMode::kMeasured}) {
    if (text != AbslUnparseFlag(known)) continue;
    *mode = known;
    return true;
  }
  *error = ExpectedOneOf(text, {"rules", "none", "measured"});
  return false;
}

std::string AbslUnparseFlag(FuseMode mode) {
  return mode == FuseMode::kRules  ? "rules"
         : mode == FuseMode::kNone ? "none"
                                   : "measured";
}

namespace {

// Names the first node that is not covered. A model that lacks some is not what
// its name says, so that its time is no result.
void SayUncovered(const graph::Imported& imported, const std::string& path) {
  const graph::Uncovered& first = imported.uncovered.front();
  std::cerr << "optrail graph: " << path << ": " << imported.uncovered.size()
            << " not covered, the first: node \"" << absl::CEscape(first.node)
            << "\" (" << absl::CEscape(first.op)
            << "): " << absl::CEscape(first.reason)
            << "; nothing is recorded; next: optrail graph show " << path
            << "\n";
}

}  // namespace

absl::StatusOr<std::unique_ptr<ops::Device>> DeviceOf(
    GraphRunCommand& command) {
  if (command.device == "cpu") {
    if (command.threads == 0) {
      command.threads = static_cast<int>(UsableCpus().size());
    }
    OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<ops::CpuDevice> device,
                             ops::MakeCpuDevice(command.threads));
    return device;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* const type,
                           ops::FindDeviceTypeNamed(command.device));
  return type->Make({});
}

absl::StatusOr<graph::RunnerOptions> RunnerOptionsOf(
    const GraphRunCommand& command) {
  graph::RunnerOptions options;
  if (command.type == "bf16") {
    options.type = proto::ELEMENT_BF16;
  } else if (command.type != "f32") {
    return absl::InvalidArgumentError(
        absl::StrCat("--type=", command.type, ": expected f32 or bf16"));
  }
  options.compile_cache = command.compile_cache;
  options.fuse = command.fuse != FuseMode::kNone;
  options.store = command.store;
  return options;
}

absl::StatusOr<std::unique_ptr<graph::Runner>> MakeRunner(
    const GraphRunCommand& command, const graph::Graph& graph,
    ops::Device& device, graph::RunnerOptions& options,
    std::unique_ptr<MeasuredFusion>& fusion) {
  if (command.fuse == FuseMode::kMeasured) {
    OPTRAIL_ASSIGN_OR_RETURN(
        fusion, MeasuredFusion::Create(command.fusion_store, device, options));
    options.choose = fusion->chooser();
  }
  OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<graph::Runner> runner,
                           graph::Runner::Create(graph, device, options));
  if (fusion != nullptr) OPTRAIL_RETURN_IF_ERROR(fusion->Save());
  return runner;
}

absl::StatusOr<ExitCode> RunGraph(const GraphRunCommand& asked,
                                  std::ostream& out) {
  GraphRunCommand command = asked;
  OPTRAIL_ASSIGN_OR_RETURN(const graph::Imported imported,
                           graph::ImportOnnx(command.path, command.import));
  const int64_t started_unix_ns = Clock::Real()->WallNs();
  const graph::Graph& graph = imported.graph;
  const bool covered = imported.uncovered.empty();
  if (!covered) {
    SayUncovered(imported, command.path);
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
  OPTRAIL_ASSIGN_OR_RETURN(const Timed timed, TimeAll(*runner, *device));
  if (!command.page.empty()) {
    OPTRAIL_RETURN_IF_ERROR(WritePage(command, *runner, timed, flop));
  }
  if (command.record && same.value_or(true)) {
    OPTRAIL_RETURN_IF_ERROR(
        Record(command, *runner, timed, flop, started_unix_ns));
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
  if (!covered || !same.value_or(true) || !same_as_peer) {
    return ExitCode::kCheckFailed;
  }
  return timed.is_known() ? ExitCode::kOk : ExitCode::kNotEnoughData;
}

}  // namespace optrail::suites
