#include "suites/graph/serve_graph.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "graph/input/input_source.h"
#include "graph/reference/reference.h"
#include "ops/core/device.h"
#include "suites/graph/graph_record.h"
#include "suites/graph/measured_fusion.h"

namespace optrail::suites {
namespace {

// Samples that requests go around, so that one's rows of a table are not in a
// cache because the one before it read them.
constexpr int64_t kLeastSamples = 256;

// The rows of seeded inputs, to be copied into a runner's.
class Samples {
 public:
  static Samples Of(const graph::Graph& graph, int64_t batch, uint64_t seed) {
    Samples samples;
    samples.inputs_.resize(graph.inputs.size());
    for (; samples.count_ < kLeastSamples; samples.count_ += batch) {
      const std::vector<graph::Array> inputs = graph::SeededInputs(
          graph, seed + static_cast<uint64_t>(samples.count_));
      for (size_t i = 0; i < inputs.size(); ++i) {
        samples.inputs_[i] += inputs[i].Encode();
      }
    }
    return samples;
  }

  absl::Status Feed(int64_t first, int64_t count, graph::Feeder& feeder) const {
    OPTRAIL_ASSIGN_OR_RETURN(const absl::Span<char* const> addresses,
                             feeder.Next());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const size_t bytes = inputs_[i].size() / static_cast<size_t>(count_);
      for (int64_t r = 0; r < count; ++r) {
        const auto from = static_cast<size_t>((first + r) % count_);
        std::memcpy(addresses[i] + static_cast<size_t>(r) * bytes,
                    inputs_[i].data() + from * bytes, bytes);
      }
    }
    return feeder.Send();
  }

 private:
  std::vector<std::string> inputs_;
  int64_t count_ = 0;
};

// One worker. Its device goes last.
struct Worker {
  std::unique_ptr<ops::Device> device;
  std::unique_ptr<MeasuredFusion> fusion;
  std::unique_ptr<graph::Runner> runner;
  std::unique_ptr<graph::Feeder> feeder;
};

// Replaces a number of threads that stands for all of them.
absl::StatusOr<Worker> MakeWorker(GraphServeCommand& command,
                                  const graph::Graph& graph) {
  Worker worker;
  OPTRAIL_ASSIGN_OR_RETURN(worker.device, DeviceOf(command.model));
  OPTRAIL_ASSIGN_OR_RETURN(graph::RunnerOptions options,
                           RunnerOptionsOf(command.model));
  options.tuned = !command.untuned;
  // The other workers find the decisions that the first one measures.
  OPTRAIL_ASSIGN_OR_RETURN(
      worker.runner,
      MakeRunner(command.model, graph, *worker.device, options, worker.fusion));
  OPTRAIL_ASSIGN_OR_RETURN(worker.feeder, worker.runner->MakeFeeder({}));
  return worker;
}

// The time of a call beside those of the other workers is no better: the
// fastest of a few calls is where a search for the highest load begins.
absl::StatusOr<double> FastestCallNs(graph::Runner& runner) {
  double fastest_ns = 0;
  const int64_t start_ns = Clock::Real()->NowNs();
  for (int call = 0; call < 50; ++call) {
    const int64_t before_ns = Clock::Real()->NowNs();
    OPTRAIL_RETURN_IF_ERROR(runner.Run());
    OPTRAIL_RETURN_IF_ERROR(runner.BringOutputs());
    const int64_t now_ns = Clock::Real()->NowNs();
    const auto ns =
        static_cast<double>(std::max<int64_t>(1, now_ns - before_ns));
    if (call == 0 || ns < fastest_ns) fastest_ns = ns;
    if (call >= 2 && now_ns - start_ns > 100'000'000) break;
  }
  return fastest_ns;
}

Cell Nanoseconds(double ns) { return Cell::Number(ns, FormatDurationNs(ns)); }

Cell Rate(double per_second) {
  return Cell::Number(per_second, absl::StrFormat("%.6g", per_second));
}

std::string IntervalText(const LatencyInterval& interval) {
  if (!interval.has_high()) {
    return absl::StrCat("at least ", FormatDurationNs(interval.low_ns));
  }
  return absl::StrCat(FormatDurationNs(interval.value_ns), " (",
                      FormatDurationNs(interval.low_ns), " to ",
                      FormatDurationNs(interval.high_ns), ")");
}

// A load that is held is answered at the rate at which it arrives.
double RequestsPerSecond(double load, const ServedLoad& served) {
  return served.overloaded ? served.achieved : load;
}

Table ServedTable(const GraphServeCommand& command, double load,
                  const ServedLoad& served) {
  Table table({{"load", Align::kRight, "load"},
               {"batch", Align::kRight},
               {"workers", Align::kRight},
               {"threads", Align::kRight},
               {"requests/s", Align::kRight, "requests_per_second"},
               {"p50", Align::kRight, "latency_p50"},
               {"p95", Align::kRight, "latency_p95"},
               {"p99", Align::kRight, "latency_p99"},
               {"at least", Align::kRight, "latency_p99_low"},
               {"at most", Align::kRight, "latency_p99_high"},
               {"late", Align::kRight, "late"},
               {"of a batch", Align::kRight, "requests_of_batch"},
               {"queue", Align::kRight, "queue_mean"},
               {"longest", Align::kRight, "queue_most"},
               {"overloaded", Align::kLeft, "overloaded"}});
  const std::vector<double>& latencies_ns = served.latencies_ns;
  const LatencyInterval p99 = LatencyQuantile(latencies_ns, .99);
  const double limit_ns = absl::ToDoubleNanoseconds(command.p99_limit);
  const double late = served.ShareAbove(limit_ns);
  const auto latency = [&](double ns) {
    return latencies_ns.empty() ? Cell::None() : Nanoseconds(ns);
  };
  table.AddRow(
      {Rate(load), Cell::Integer(command.load.batch),
       Cell::Integer(command.load.workers),
       command.model.device == "cpu" ? Cell::Integer(command.model.threads)
                                     : Cell::None(),
       Rate(RequestsPerSecond(load, served)),
       latency(LatencyQuantile(latencies_ns, .5).value_ns),
       latency(LatencyQuantile(latencies_ns, .95).value_ns),
       latency(p99.value_ns), latency(p99.low_ns),
       p99.has_high() ? latency(p99.high_ns) : Cell::None(),
       limit_ns == 0 || latencies_ns.empty()
           ? Cell::None()
           : Cell::Number(late, FormatPercent(late, 2)),
       Cell::Number(served.requests_of_batch(),
                    absl::StrFormat("%.1f", served.requests_of_batch())),
       Cell::Number(served.queue_mean,
                    absl::StrFormat("%.1f", served.queue_mean)),
       Cell::Integer(served.queue_most), served.overloaded ? "yes" : "no"});
  return table;
}

struct Served {
  double load = 0;
  ServedLoad result;
  int probes = 1;
};

std::string MeaningText(const GraphServeCommand& command, const Served& tried) {
  const double load = tried.load;
  const ServedLoad& served = tried.result;
  const LatencyInterval p99 = LatencyQuantile(served.latencies_ns, .99);
  const double limit_ns = absl::ToDoubleNanoseconds(command.p99_limit);
  if (load == 0) {
    return absl::StrFormat(
        "No load keeps a 99th percentile of %s with batches of %d (%d loads "
        "tried). Next: a smaller --batch or --max_wait, or a higher "
        "--p99_limit",
        absl::FormatDuration(command.p99_limit), command.load.batch,
        tried.probes);
  }
  if (served.overloaded) {
    return absl::StrFormat(
        "The queue grows: this load cannot be served. Of %.6g requests/s %.6g "
        "were answered, and %d waited at the end. Next: a lower --load, or "
        "--p99_limit without --load, which finds the highest that is held",
        load, served.achieved, served.queue_final);
  }
  if (CodeOfServed(served, command.p99_limit) == ExitCode::kNotEnoughData) {
    return absl::StrFormat(
        "Inconclusive: %d requests, which depend on each other, are too few to "
        "bound the 99th percentile of latency; it is %s. Next: a longer "
        "--duration than %s",
        served.latencies_ns.size(), IntervalText(p99),
        FormatDurationNs(1e9 * static_cast<double>(served.latencies_ns.size()) /
                         served.offered));
  }
  std::string text = absl::StrFormat(
      "%.6g requests/s are served; 99th percentile of latency %s, %d requests",
      load, IntervalText(p99), served.latencies_ns.size());
  if (limit_ns > 0) {
    absl::StrAppend(&text, "; ",
                    CodeOfServed(served, command.p99_limit) != ExitCode::kOk
                        ? "ABOVE the limit"
                    : p99.high_ns > limit_ns ? "within the limit, to which "
                                               "the interval extends"
                                             : "within the limit",
                    " of ", FormatDurationNs(limit_ns));
  }
  return text;
}

absl::StatusOr<Served> Serve(const GraphServeCommand& command,
                             std::vector<Worker>& workers,
                             const Samples& samples) {
  const ServeBatch serve = [&](int worker, int64_t first, int64_t count) {
    graph::Runner& runner = *workers[worker].runner;
    OPTRAIL_RETURN_IF_ERROR(runner.UseInThisThread());
    OPTRAIL_RETURN_IF_ERROR(
        samples.Feed(first, count, *workers[worker].feeder));
    OPTRAIL_RETURN_IF_ERROR(runner.Run());
    return runner.BringOutputs();
  };
  double fastest_ns = 0;
  for (size_t w = 0; w < workers.size(); ++w) {
    OPTRAIL_RETURN_IF_ERROR(
        samples.Feed(0, command.load.batch, *workers[w].feeder));
    OPTRAIL_ASSIGN_OR_RETURN(fastest_ns, FastestCallNs(*workers[w].runner));
  }
  Served served;
  if (command.load.load > 0) {
    served.load = command.load.load;
    OPTRAIL_ASSIGN_OR_RETURN(served.result, ServeOpenLoop(command.load, serve));
    return served;
  }
  const double guess = .7e9 / fastest_ns *
                       static_cast<double>(command.load.batch) *
                       command.load.workers;
  const double limit_ns = absl::ToDoubleNanoseconds(command.p99_limit);
  uint64_t seed = command.load.seed;
  const auto probe =
      [&](const OpenLoopOptions& asked) -> absl::StatusOr<ServedLoad> {
    OpenLoopOptions options = asked;
    options.seed = ++seed;  // another probe has other arrivals
    const double seconds = absl::ToDoubleSeconds(options.duration);
    if (options.load * seconds > kMostRequests) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%.6g requests/s for %.3g s are too many to keep the latency of "
          "each; next: a shorter --duration, or a lower --p99_limit, of which "
          "it is at least 20 times",
          options.load, seconds));
    }
    return ServeOpenLoop(options, serve);
  };
  OPTRAIL_ASSIGN_OR_RETURN(
      Capacity capacity, FindCapacity(guess, limit_ns, [&](double load) {
        return ProbeLoad(command.load, load, limit_ns, probe);
      }));
  served.load = capacity.load;
  served.result = std::move(capacity.served);
  served.probes = capacity.probes;
  return served;
}

}  // namespace

ExitCode CodeOfServed(const ServedLoad& served, absl::Duration p99_limit) {
  if (served.overloaded) return ExitCode::kCheckFailed;
  if (p99_limit == absl::ZeroDuration()) return ExitCode::kOk;
  const double limit_ns = absl::ToDoubleNanoseconds(p99_limit);
  const LatencyInterval p99 = LatencyQuantile(served.latencies_ns, .99);
  if (!p99.has_high()) {
    return p99.low_ns > limit_ns ? ExitCode::kCheckFailed
                                 : ExitCode::kNotEnoughData;
  }
  return p99.value_ns > limit_ns ? ExitCode::kCheckFailed : ExitCode::kOk;
}

MeasuredGraph MeasuredOfServed(const GraphServeCommand& command, double load,
                               const ServedLoad& served) {
  const bool searched = command.load.load == 0;
  MeasuredGraph measured;
  measured.model = std::filesystem::path(command.model.path).stem().string();
  measured.device = command.model.device;
  measured.type = command.model.type;
  measured.threads = command.model.threads;
  measured.fuse = AbslUnparseFlag(command.model.fuse);
  measured.untuned = command.untuned;
  // A load that was searched for is a result, its limit is not.
  measured.served = absl::StrFormat(
      "%s,batch=%d,workers=%d,max_wait=%s",
      searched
          ? absl::StrCat("p99_limit=", absl::FormatDuration(command.p99_limit))
          : absl::StrFormat("load=%.6g", load),
      command.load.batch, command.load.workers,
      absl::FormatDuration(command.load.max_wait));
  measured.whole.outcome = proto::OK;
  const auto latency = [&](double p) {
    return LatencyQuantile(served.latencies_ns, p).value_ns;
  };
  measured.metrics = {
      MetricOf("requests_per_second", "requests/s",
               RequestsPerSecond(load, served), proto::HIGHER_IS_BETTER),
      MetricOf("latency_p99", "ns", latency(.99), proto::LOWER_IS_BETTER)};
  // A faster model is found to hold a higher load, at which the median and the
  // queue may be larger: they would call the better result a regression.
  if (searched) return measured;
  // The time is that of the median request.
  measured.whole.measurement.set_median_ns(latency(.5));
  measured.whole.measurement.set_aggregate_only(true);
  measured.metrics.push_back(
      MetricOf("latency_p95", "ns", latency(.95), proto::LOWER_IS_BETTER));
  measured.metrics.push_back(MetricOf(
      "queue_mean", "requests", served.queue_mean, proto::LOWER_IS_BETTER));
  return measured;
}

absl::StatusOr<ExitCode> ServeGraph(const GraphServeCommand& asked,
                                    std::ostream& out) {
  GraphServeCommand command = asked;
  const int64_t started_unix_ns = Clock::Real()->WallNs();
  command.model.import.batch = command.load.batch;
  absl::StatusOr<graph::Imported> imported_or =
      graph::ImportOnnx(command.model.path, command.model.import);
  if (!imported_or.ok()) {
    if (command.load.batch == 0) return imported_or.status();
    return absl::Status(
        imported_or.status().code(),
        absl::StrCat(imported_or.status().message(),
                     " (with --batch=", command.load.batch,
                     "; without it the batch is that of "
                     "the file, which may be all that its nodes allow)"));
  }
  const graph::Imported imported = *std::move(imported_or);
  OPTRAIL_RETURN_IF_ERROR(graph::CheckCovered(imported, command.model.path));
  const graph::Graph& graph = imported.graph;
  OPTRAIL_ASSIGN_OR_RETURN(command.load.batch, graph::BatchOf(graph));
  std::vector<Worker> workers;
  for (int w = 0; w < command.load.workers; ++w) {
    OPTRAIL_ASSIGN_OR_RETURN(Worker worker, MakeWorker(command, graph));
    workers.push_back(std::move(worker));
  }
  const Samples samples =
      Samples::Of(graph, command.load.batch, command.model.import.seed);
  OPTRAIL_ASSIGN_OR_RETURN(const Served served,
                           Serve(command, workers, samples));
  const bool is_table = command.model.format == OutputFormat::kTable;
  out << ServedTable(command, served.load, served.result)
             .Format(command.model.format, TerminalWidth());
  const ExitCode code = served.load == 0
                            ? ExitCode::kCheckFailed
                            : CodeOfServed(served.result, command.p99_limit);
  if (is_table) {
    if (command.load.load == 0 && served.load > 0) {
      out << "highest load held, of " << served.probes << " tried:\n";
    }
    out << MeaningText(command, served) << "\n";
  } else if (code != ExitCode::kOk) {
    std::cerr << MeaningText(command, served) << "\n";
  }
  if (command.model.record && served.load > 0 && !served.result.overloaded &&
      code != ExitCode::kNotEnoughData) {
    MeasuredGraph measured =
        MeasuredOfServed(command, served.load, served.result);
    measured.started_unix_ns = started_unix_ns;
    measured.arena_bytes = workers[0].runner->plan().arena_bytes;
    OPTRAIL_RETURN_IF_ERROR(
        RecordGraph(measured, command.model.history, command.model.store));
  }
  return code;
}

}  // namespace optrail::suites
