#include "suites/graph/recompute_graph.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "base/process/cpus.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "graph/ir/ops.h"
#include "graph/reference/reference.h"
#include "graph/runner/runner.h"
#include "graph/training/gradients.h"
#include "graph/training/recompute.h"
#include "ops/device/cpu/device.h"
#include "suites/graph/call_timer.h"
#include "suites/graph/paired_timing.h"
#include "suites/graph/step_profile.h"
#include "tracker/command/command_support.h"

namespace optrail::suites {
namespace {

using graph::Graph;
using graph::Node;

bool IsProduct(const Node& node) {
  return node.op == "matmul" || node.op == "linear";
}

double Flop(const Graph& graph, const Node& node) {
  return 2 * static_cast<double>(graph.type(node.inputs[0]).dims.back()) *
         static_cast<double>(graph::Elements(graph.type(node.outputs[0]).dims));
}

// Returns the bytes that a node reads and writes if it is by itself.
double Bytes(const Graph& graph, const Node& node) {
  if (graph::IsView(node)) return 0;
  int64_t bytes = 0;
  for (const int input : node.inputs) {
    if (input >= 0) bytes += graph.type(input).bytes();
  }
  for (const int output : node.outputs) bytes += graph.type(output).bytes();
  return static_cast<double>(bytes);
}

// Nanoseconds for a FLOP of products and for a byte of everything else, as a
// whole step takes them on average.
struct Rates {
  double flop_ns = 0, byte_ns = 0;
  double step_ns = 0;

  double Cost(const Graph& graph, const Node& node) const {
    return IsProduct(node) ? flop_ns * Flop(graph, node)
                           : byte_ns * Bytes(graph, node);
  }
};

absl::StatusOr<Rates> MeasureRates(const Graph& graph, graph::Runner& runner,
                                   ops::Device& device) {
  static const auto* const products = new std::set<std::string>{
      "matmul", "linear", "batched_matmul", "attention"};
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<double> steps_ns,
                           ProfileSteps(runner, device));
  double products_ns = 0, others_ns = 0;
  for (size_t s = 0; s < steps_ns.size(); ++s) {
    const bool is_product = products->count(runner.steps()[s].kernel) > 0;
    (is_product ? products_ns : others_ns) += steps_ns[s];
  }
  double flop = 0, bytes = 0;
  for (const Node& node : graph.nodes) {
    if (IsProduct(node)) {
      flop += Flop(graph, node);
    } else {
      bytes += Bytes(graph, node);
    }
  }
  Rates rates;
  rates.step_ns = products_ns + others_ns;
  if (flop > 0) rates.flop_ns = products_ns / flop;
  if (bytes > 0) rates.byte_ns = others_ns / bytes;
  return rates;
}

// The measured times of one point of the front.
struct MeasuredPoint {
  size_t point = 0;
  PairedTimes times;  // of it, and of the step that keeps everything
  int64_t arena_bytes = 0, arena_bytes_keeping_all = 0;
  double difference = 0;  // of the gradients, as a part of the largest value
};

// Columns for programs, which read no sentence: absent but for that point.
constexpr const char* kMeasuredColumns[] = {"measured_added_part",
                                            "measured_added_part_low",
                                            "measured_added_part_high",
                                            "rounds",
                                            "step_time_ns",
                                            "step_time_keeping_all_ns",
                                            "arena_bytes",
                                            "arena_bytes_keeping_all",
                                            "gradient_difference"};

void AddMeasured(const MeasuredPoint& measured, std::vector<Cell>& row) {
  const PairedTimes& times = measured.times;
  for (const double part :
       {times.ratio() - 1, times.low() - 1, times.high() - 1}) {
    row.push_back(Cell::Number(part, FormatChange(part)));
  }
  row.push_back(Cell::Integer(times.evidence.rounds));
  for (const double ns : {times.first_ns, times.second_ns}) {
    row.push_back(Cell::Number(ns, FormatDurationNs(ns)));
  }
  row.push_back(Cell::Integer(measured.arena_bytes));
  row.push_back(Cell::Integer(measured.arena_bytes_keeping_all));
  row.push_back(Cell::Number(measured.difference,
                             absl::StrFormat("%.2g", measured.difference)));
}

// People read what was measured below the table.
Table FrontTable(const std::vector<graph::RecomputePoint>& front,
                 const Rates& rates, bool for_people,
                 const absl::optional<MeasuredPoint>& measured) {
  std::vector<Column> columns = {
      {"point", Align::kRight},
      {"kept", Align::kRight, "kept_bytes"},
      {"of all", Align::kRight, "kept_part"},
      {"time", Align::kRight, "predicted_added_part"},
      {"computed again", Align::kLeft, "", Clip::kNever}};
  if (!for_people) {
    for (const char* name : kMeasuredColumns) {
      columns.push_back({name, Align::kRight});
    }
  }
  const size_t width = columns.size();
  Table table(std::move(columns));
  const auto all = static_cast<double>(front[0].kept_bytes);
  for (size_t p = 0; p < front.size(); ++p) {
    const auto kept = static_cast<double>(front[p].kept_bytes);
    const double part = all > 0 ? kept / all : 0;
    const double added = front[p].added_ns / rates.step_ns;
    std::vector<Cell> row = {Cell::Integer(static_cast<int64_t>(p)),
                             Cell::Number(kept, FormatBytes(kept)),
                             Cell::Number(part, FormatPercent(part)),
                             Cell::Number(added, FormatChange(added)),
                             front[p].what};
    if (!for_people && measured && measured->point == p) {
      AddMeasured(*measured, row);
    }
    while (row.size() < width) row.push_back(Cell::None());
    table.AddRow(std::move(row));
  }
  return table;
}

// The gradients of both steps beside each other, each as a part of its largest
// value. A gradient that is zero in exact arithmetic, as that of a bias that
// softmax takes out again, is rounding alone: it moves as far when the inputs
// change in their last bits, so that nothing can be said of it.
struct GradientDifference {
  double largest = 0;  // of those that are told
  std::string worst;
  std::vector<std::string> untold;  // that are rounding alone
  int all = 0;

  bool tells_nothing() const {
    return static_cast<int>(untold.size()) == all && all > 0;
  }
};

// The last bits of values in f32 or f64 go up or down, by their places.
void NudgeLastBits(graph::Array* array) {
  const double bit = array->type.type == proto::ELEMENT_F64 ? 0x1p-52 : 0x1p-23;
  for (size_t i = 0; i < array->reals.size(); ++i) {
    array->reals[i] *= 1 + (i % 2 == 0 ? bit : -bit);
  }
}

absl::StatusOr<GradientDifference> CompareGradients(
    const Graph& graph, std::vector<graph::Array> inputs, double tolerance,
    graph::Runner* again, graph::Runner* keeps) {
  // A gradient may differ by so many times what the last bits move it by.
  constexpr double kMovements = 10;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<graph::Array> ours,
                           again->Outputs());
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<graph::Array> expected,
                           keeps->Outputs());
  for (graph::Array& input : inputs) NudgeLastBits(&input);
  OPTRAIL_RETURN_IF_ERROR(keeps->SetInputs(inputs));
  OPTRAIL_RETURN_IF_ERROR(keeps->Run());
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<graph::Array> nudged,
                           keeps->Outputs());
  GradientDifference all;
  all.all = static_cast<int>(ours.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    const std::string& name = graph.values[graph.outputs[i]].name;
    const graph::Difference difference = graph::Compare(ours[i], expected[i]);
    if (!difference.problem.empty()) {
      return absl::InternalError(
          absl::StrCat("output ", name, " ", difference.problem));
    }
    const double moved = graph::Compare(nudged[i], expected[i]).relative;
    if (difference.relative > tolerance && moved > tolerance &&
        difference.relative <= kMovements * moved) {
      all.untold.push_back(name);
    } else if (difference.relative >= all.largest) {
      all.largest = difference.relative;
      all.worst = name;
    }
  }
  return all;
}

std::string TextOf(const GradientDifference& difference, bool same) {
  if (difference.tells_nothing()) {
    return absl::StrCat(
        "nothing can be told of the gradients: the last bits of the inputs "
        "move all ",
        difference.all, " as far as the steps differ\n");
  }
  std::string text = absl::StrCat(
      same ? "the gradients are the same: " : "the gradients DIFFER: ",
      absl::StrFormat("%.2g", difference.largest), " of the largest value");
  if (!same) absl::StrAppend(&text, " of ", difference.worst);
  if (!difference.untold.empty()) {
    absl::StrAppend(&text, "; ", difference.untold.size(), " of ",
                    difference.all,
                    " are rounding alone and move as far with the last bits of "
                    "the inputs, such as ",
                    difference.untold.front());
  }
  return absl::StrCat(text, "\n");
}

std::string TextOf(const MeasuredPoint& measured, double predicted) {
  return absl::StrCat(
      "point ", measured.point, ": measured ", RatioText(measured.times),
      " the time, predicted ", absl::StrFormat("%.3fx", predicted),
      "; a step that keeps everything takes ",
      FormatDurationNs(measured.times.second_ns),
      "\narena: ", FormatBytes(static_cast<double>(measured.arena_bytes)),
      " for ",
      FormatBytes(static_cast<double>(measured.arena_bytes_keeping_all)),
      ", gradients of weights included\n");
}

// The first point that keeps at most this part of all bytes, if there is one.
size_t FirstWithin(double part,
                   const std::vector<graph::RecomputePoint>& front) {
  const double most = part * static_cast<double>(front[0].kept_bytes);
  size_t point = 0;
  while (point < front.size() &&
         static_cast<double>(front[point].kept_bytes) > most) {
    ++point;
  }
  return point;
}

// A runner that has computed its outputs.
absl::StatusOr<std::unique_ptr<graph::Runner>> RunOnce(
    const Graph& graph, ops::Device& device,
    const graph::RunnerOptions& options,
    const std::vector<graph::Array>& inputs) {
  OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<graph::Runner> runner,
                           graph::Runner::Create(graph, device, options));
  OPTRAIL_RETURN_IF_ERROR(runner->SetInputs(inputs));
  OPTRAIL_RETURN_IF_ERROR(runner->Run());
  return runner;
}

// Steps that compute values again, and those that keep everything.
absl::StatusOr<PairedTimes> TimeSteps(graph::Runner& again,
                                      graph::Runner& keeps, bool one_thread,
                                      ops::Device& device) {
  const auto timer = [&](graph::Runner& runner) {
    return CallTimer::Create([&](const ops::Call&) { return runner.Run(); },
                             device);
  };
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<CallTimer> slow, timer(again));
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<CallTimer> fast, timer(keeps));
  PairedTimingOptions timing;
  timing.one_thread = one_thread;
  return TimePairs(slow->get(), fast->get(), timing);
}

}  // namespace

absl::StatusOr<ExitCode> RecomputeGraph(const GraphRecomputeCommand& command,
                                        std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const graph::Imported imported,
                           graph::ImportOnnx(command.path, command.import));
  OPTRAIL_RETURN_IF_ERROR(graph::CheckCovered(imported, command.path));
  OPTRAIL_ASSIGN_OR_RETURN(const graph::TrainingGraph training,
                           graph::WithGradients(imported.graph));
  const int threads = command.threads > 0
                          ? command.threads
                          : static_cast<int>(UsableCpus().size());
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<ops::CpuDevice> device,
                           ops::MakeCpuDevice(threads));
  graph::RunnerOptions options;
  options.compile_cache = command.compile_cache;
  options.store = command.store;
  const auto inputs = graph::SeededInputs(training.graph, command.import.seed);
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<graph::Runner> keeps,
                           RunOnce(training.graph, *device, options, inputs));
  OPTRAIL_ASSIGN_OR_RETURN(const Rates rates,
                           MeasureRates(training.graph, *keeps, *device));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<graph::RecomputePoint> front,
      graph::RecomputeFront(training,
                            [&](const Graph& graph, const Node& node) {
                              return rates.Cost(graph, node);
                            }));
  const bool for_people = tracker::IsForPeople(command.format);
  const auto print_front = [&](const absl::optional<MeasuredPoint>& measured) {
    out << FrontTable(front, rates, for_people, measured)
               .Format(command.format, TerminalWidth());
  };
  if (for_people) print_front(absl::nullopt);
  const size_t chosen = FirstWithin(command.memory, front);
  if (chosen == front.size()) {
    if (!for_people) print_front(absl::nullopt);
    (for_people ? out : std::cerr) << "no point keeps as little as "
                                   << FormatPercent(command.memory) << "\n";
    return ExitCode::kCheckFailed;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const Graph less,
                           graph::Recompute(training, front[chosen].dropped));
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<graph::Runner> again,
                           RunOnce(less, *device, options, inputs));
  OPTRAIL_ASSIGN_OR_RETURN(
      const GradientDifference difference,
      CompareGradients(training.graph, inputs, command.tolerance, again.get(),
                       keeps.get()));
  OPTRAIL_ASSIGN_OR_RETURN(const PairedTimes times,
                           TimeSteps(*again, *keeps, threads == 1, *device));
  const bool same = difference.largest <= command.tolerance;
  const MeasuredPoint measured{chosen, times, again->plan().arena_bytes,
                               keeps->plan().arena_bytes, difference.largest};
  if (!for_people) {
    print_front(measured);
  } else {
    out << TextOf(measured, 1 + front[chosen].added_ns / rates.step_ns)
        << TextOf(difference, same);
  }
  if (difference.tells_nothing()) return ExitCode::kNotEnoughData;
  return same ? ExitCode::kOk : ExitCode::kCheckFailed;
}

}  // namespace optrail::suites
