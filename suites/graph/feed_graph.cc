#include "suites/graph/feed_graph.h"

#include <filesystem>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "graph/runner/runner.h"
#include "suites/graph/fed_timing.h"
#include "suites/graph/graph_record.h"

namespace optrail::suites {
namespace {

Cell Duration(double ns) {
  return ns == 0 ? Cell::None() : Cell::Number(ns, FormatDurationNs(ns));
}

Cell Percent(double part) { return Cell::Number(part, FormatPercent(part)); }

// One row.
Table TimesTable(const GraphFeedCommand& command, const FedTimes& times,
                 int64_t batch) {
  Table table({{"workers", Align::kRight},
               {"prefetch", Align::kRight},
               {"chunk", Align::kRight},
               {"batch", Align::kRight},
               {"a sample", Align::kRight, "sample_time_ns"},
               {"a batch", Align::kRight, "batch_time_ns"},
               {"model alone", Align::kRight, "model_time_ns"},
               {"waits", Align::kRight},
               {"copies", Align::kRight},
               {"idle", Align::kRight},
               {"threads read", Align::kRight, "reads"},
               {"parse", Align::kRight, "parses"},
               {"rest", Align::kRight, "rests"}});
  const double batch_ns = times.is_known() ? times.fed.time_ns : 0;
  table.AddRow(
      {Cell::Integer(command.loader.workers),
       Cell::Integer(command.loader.prefetch),
       Cell::Integer(command.loader.chunk), Cell::Integer(batch),
       Duration(batch_ns / static_cast<double>(batch)), Duration(batch_ns),
       Duration(times.alone_ns), Percent(times.waits), Percent(times.copies),
       times.idle ? Percent(*times.idle) : Cell::None(), Percent(times.reads),
       Percent(times.parses), Percent(times.rests)});
  return table;
}

absl::Status Record(const GraphFeedCommand& command, const FedTimes& times,
                    const graph::Runner& runner, int64_t started_unix_ns) {
  MeasuredGraph measured;
  const GraphRunCommand& model = command.model;
  measured.model = std::filesystem::path(model.path).stem().string();
  measured.device = model.device;
  measured.type = model.type;
  measured.threads = model.threads;
  measured.fuse = "rules";
  measured.fed = true;
  measured.started_unix_ns = started_unix_ns;
  measured.whole = times.fed;
  measured.kernels_ns = {{"wait", times.waits * times.fed.time_ns},
                         {"copy", times.copies * times.fed.time_ns}};
  measured.arena_bytes = runner.plan().arena_bytes;
  return RecordGraph(measured, model.history, model.store);
}

}  // namespace

absl::StatusOr<ExitCode> FeedGraph(const GraphFeedCommand& asked,
                                   std::ostream& out) {
  GraphFeedCommand command = asked;
  GraphRunCommand& how = command.model;
  const int64_t started_unix_ns = Clock::Real()->WallNs();
  OPTRAIL_ASSIGN_OR_RETURN(const graph::Imported imported,
                           graph::ImportOnnx(how.path, how.import));
  OPTRAIL_RETURN_IF_ERROR(graph::CheckCovered(imported, how.path));
  OPTRAIL_ASSIGN_OR_RETURN(const graph::RunnerOptions options,
                           RunnerOptionsOf(how));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<graph::SampleInput> inputs,
                           graph::SampleInputs(imported.graph));
  FedModel model;
  OPTRAIL_ASSIGN_OR_RETURN(model.batch, graph::BatchOf(imported.graph));
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<graph::InputSource> source,
                           graph::OpenInput(command.input, inputs));
  const std::unique_ptr<graph::InputSource> slower =
      graph::WithReadLatency(*source, command.read_latency);
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<ops::Device> device,
                           DeviceOf(how));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<graph::Runner> runner,
      graph::Runner::Create(imported.graph, *device, options));
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<graph::Feeder> feeder,
                           runner->MakeFeeder(command.feeder));
  model.compute = [&] { return runner->Run(); };
  model.feeder = feeder.get();
  const bool is_slower = command.read_latency > absl::ZeroDuration();
  OPTRAIL_ASSIGN_OR_RETURN(const FedTimes times,
                           TimeFed(model, is_slower ? *slower : *source, inputs,
                                   command.loader, *device));
  if (how.record && times.is_known()) {
    OPTRAIL_RETURN_IF_ERROR(Record(command, times, *runner, started_unix_ns));
  }
  out << TimesTable(command, times, model.batch)
             .Format(how.format, TerminalWidth());
  if (how.format == OutputFormat::kTable) {
    out << FormatCount(source->samples()) << " samples in " << command.input
        << "\n"
        << (times.is_known()
                ? HeldBackText(times, command.feeder)
                : "the machine was too busy to tell what a batch takes")
        << "\n";
  }
  return times.is_known() ? ExitCode::kOk : ExitCode::kNotEnoughData;
}

}  // namespace optrail::suites
