#include "suites/graph/tune_graph.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/file/failed_file.h"
#include "base/file/file.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "base/text/progress.h"
#include "base/text/quote.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "suites/graph/graph_record.h"
#include "tuning/command/metric.h"
#include "tuning/session/objective.h"
#include "tuning/session/parse_objective.h"
#include "tuning/session/proof.h"
#include "tuning/session/session.h"
#include "tuning/space/space.h"

namespace optrail::suites {
namespace {

constexpr char kRequests[] = "requests_per_second";
constexpr char kLatency[] = "latency_p99";

proto::Objective RequestsObjective() {
  return *tuning::ParseObjective(absl::StrCat(kRequests, ":max"));
}

std::string ModelName(const GraphTuneCommand& command) {
  return std::filesystem::path(command.path).stem().string();
}

absl::StatusOr<double> Read(const std::string& metric,
                            const std::string& output) {
  tuning::Metric read;
  read.objective.set_metric(metric);
  return tuning::ReadMetric(read, output);
}

ServedAs StartOf(const GraphTuneCommand& command) {
  ServedAs as;
  as.batch = command.batch;
  as.workers = command.workers;
  as.threads = command.threads;
  return as;
}

absl::Status CheckServeSpace(const GraphTuneCommand& command) {
  const ServedAs start = StartOf(command);
  OPTRAIL_ASSIGN_OR_RETURN(
      const tuning::Space space,
      tuning::Space::Parse(ServeSpace(command, start),
                           "batch, workers and threads to serve with"));
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<tuning::BoundSpace> bound,
                           space.Bind({}, {}));
  return bound->default_refusal().empty()
             ? absl::OkStatus()
             : absl::InvalidArgumentError(bound->default_refusal());
}

class LayeredTuning {
 public:
  LayeredTuning(const GraphTuneCommand& command, const GraphTools& tools,
                std::ostream& log)
      : command_(command), tools_(tools), log_(log), as_(StartOf(command)) {}

  // An error ends the stage in which it is met; those before it stay.
  absl::Status Run() {
    const absl::Status status = Stages();
    if (!status.ok()) End(stages_.back(), status);
    return status;
  }

  const std::vector<GraphStage>& stages() const { return stages_; }
  const ServedAs& as() const { return as_; }

 private:
  absl::Status Stages() {
    OPTRAIL_RETURN_IF_ERROR(Operators());
    OPTRAIL_RETURN_IF_ERROR(Fusion("fusion"));
    const ServedAs before = as_;
    OPTRAIL_RETURN_IF_ERROR(BatchAndThreads());
    if (as_.batch == before.batch && as_.threads == before.threads) {
      return absl::OkStatus();
    }
    return Fusion("operators and fusion again");
  }

  void End(GraphStage& stage, const absl::Status& failure) {
    stage.failed = true;
    stage.changed =
        absl::StrCat(stage.changed, stage.changed.empty() ? "" : "; ",
                     "failed: ", SanitiseText(failure.message()));
    stage.took = Took();
  }

  // Steady: a clock that is set meanwhile changes no budget.
  absl::Duration Took() const { return Steady() - began_; }
  static absl::Duration Steady() {
    return absl::Nanoseconds(Clock::Real()->NowNs());
  }

  GraphStage& Begin(const std::string& name) {
    log_ << "stage " << stages_.size() + 1 << " of at most " << kMostStages
         << ": " << name << "\n";
    began_ = Steady();
    GraphStage& stage = stages_.emplace_back();
    stage.name = name;
    stage.as = as_;
    return stage;
  }

  // `optrail tune` of the operators that the model runs with these rules.
  absl::Status TuneOperators(const ServedAs& as, const std::string& fuse) {
    const std::string workload =
        JoinPath(command_.folder,
                 absl::StrCat(ModelName(command_), ".workload.textproto"));
    std::vector<std::string> write = {"graph",
                                      "workload",
                                      command_.path,
                                      absl::StrCat("--out=", workload),
                                      absl::StrCat("--fuse=", fuse),
                                      absl::StrCat("--batch=", as.batch),
                                      absl::StrCat("--threads=", as.threads)};
    write.insert(write.end(), command_.imports.begin(), command_.imports.end());
    OPTRAIL_RETURN_IF_ERROR(tools_.run(write).status());
    std::vector<std::string> tune = {
        "tune",
        absl::StrCat("--workload=", workload),
        absl::StrCat("--total_trials=", command_.total_trials),
        absl::StrCat("--proof_time=", absl::FormatDuration(kOperatorProof)),
        absl::StrCat("--seed=", command_.seed),
        "--format=json"};
    tune.insert(tune.end(), command_.places.begin(), command_.places.end());
    log_ << "  optrail " << absl::StrJoin(tune, " ") << "\n";
    const absl::Status tuned = tools_.run(tune).status();
    // Some operator has no config that works; the others are tuned.
    if (!absl::IsAborted(tuned)) return tuned;
    log_ << "note: " << tuned.message() << "\n";
    return absl::OkStatus();
  }

  absl::Status Operators() {
    GraphStage& stage = Begin("operators");
    OPTRAIL_RETURN_IF_ERROR(TuneOperators(as_, "none"));
    stage.as.untuned = false;
    stage.changed = "tuned configs in place of the defaults";
    return Prove(stage, /*must_gain=*/false);
  }

  // Fused operators are other tasks, which are tuned before they are compared.
  absl::Status Fusion(const std::string& name) {
    GraphStage& stage = Begin(name);
    OPTRAIL_RETURN_IF_ERROR(TuneOperators(as_, "rules"));
    stage.as.untuned = false;
    stage.as.fuse = "measured";
    stage.changed = absl::StrCat("operators tuned for a batch of ", as_.batch,
                                 ", rules where they are not slower");
    return Prove(stage, /*must_gain=*/false);
  }

  // Other batches have other sites of rules; to measure them all would take
  // most of the search.
  absl::Status BatchAndThreads() {
    GraphStage& stage = Begin("batch, workers, threads");
    if (stage.as.fuse == "measured") stage.as.fuse = "rules";
    const std::string space =
        JoinPath(command_.folder,
                 absl::StrCat(ModelName(command_), ".serve.space.textproto"));
    OPTRAIL_RETURN_IF_ERROR(
        WriteFileAtomically(space, ServeSpace(command_, as_)));
    std::vector<std::string> arguments;
    for (const std::string& argument : ServeArguments(command_, stage.as)) {
      const std::string flag = argument.substr(0, argument.find('='));
      const bool is_knob =
          flag == "--batch" || flag == "--workers" || flag == "--threads";
      arguments.push_back(is_knob
                              ? absl::StrCat(flag, "={", flag.substr(2), "}")
                              : QuoteForShell(argument));
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        const proto::Session session,
        tools_.search(space, absl::StrJoin(arguments, " ")));
    for (const proto::KnobValue& value : session.winner().set()) {
      if (value.knob() == "batch") stage.as.batch = value.int_();
      const auto number = static_cast<int>(value.int_());
      if (value.knob() == "workers") stage.as.workers = number;
      if (value.knob() == "threads") stage.as.threads = number;
    }
    // Decisions hold for a batch and threads: those of the start still do where
    // only workers changed, and no stage would bring them back.
    if (stage.as.batch == as_.batch && stage.as.threads == as_.threads) {
      stage.as.fuse = as_.fuse;
    }
    stage.changed = absl::StrFormat(
        "batch %d to %d, workers %d to %d, threads of each %d to %d", as_.batch,
        stage.as.batch, as_.workers, stage.as.workers, as_.threads,
        stage.as.threads);
    return Prove(stage, /*must_gain=*/true);
  }

  // One reading of a side. A pause of the machine may leave no load that keeps
  // the limit: then once more.
  absl::StatusOr<proto::Measurement> ReadOnce(const ServedAs& as) {
    absl::StatusOr<std::string> output;
    for (int attempt = 0; attempt < tuning::kReadingAttempts; ++attempt) {
      output = tools_.run(ServeArguments(command_, as));
      if (output.ok()) break;
    }
    if (absl::IsAborted(output.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat("no load keeps the limit; ", output.status().message()));
    }
    if (!output.ok()) return output.status();
    OPTRAIL_ASSIGN_OR_RETURN(const double requests, Read(kRequests, *output));
    OPTRAIL_ASSIGN_OR_RETURN(const double latency_ns, Read(kLatency, *output));
    proto::Measurement measurement;
    *measurement.add_metrics() =
        MetricOf(kRequests, "requests/s", requests, proto::HIGHER_IS_BETTER);
    *measurement.add_metrics() =
        MetricOf(kLatency, "ns", latency_ns, proto::LOWER_IS_BETTER);
    return measurement;
  }

  absl::Status Prove(GraphStage& stage, bool must_gain) {
    const bool first = stages_.size() == 1;
    const absl::StatusOr<proto::Measurement> warm = ReadOnce(stage.as);
    if (!warm.ok()) {
      // The first call also measures rules that nobody has measured yet.
      if (first) return warm.status();
      End(stage, warm.status());
      return absl::OkStatus();
    }
    const proto::Objective objective = RequestsObjective();
    tuning::ProofOptions options;
    options.max_time = command_.proof_time;
    tuning::PairedProof proof(options, {objective});
    const absl::Duration proof_began = Steady();
    std::vector<double> before, after, latency_ns;
    absl::Status failure;
    // It ends earlier where the answer is clear.
    ProgressOptions shown;
    shown.counts = false;
    shown.sink = [this](absl::string_view text) { log_ << text << std::flush; };
    Progress progress("interleaved with the stage before",
                      absl::ToInt64Milliseconds(command_.proof_time), shown);
    for (int round = 1; proof.Open(Steady() - proof_began); ++round) {
      progress.Update(std::min(progress.total(), absl::ToInt64Milliseconds(
                                                     Steady() - proof_began)),
                      absl::StrCat("round ", round));
      proto::Measurement sides[2];
      for (const int i : {0, 1}) {
        const int side = (round + i) % 2;
        auto reading = ReadOnce(side == 0 ? as_ : stage.as);
        failure.Update(reading.status());
        if (!failure.ok()) break;
        sides[side] = *std::move(reading);
        sides[side].set_round(round);
      }
      if (!failure.ok()) break;
      before.push_back(sides[0].metrics(0).values(0));
      after.push_back(sides[1].metrics(0).values(0));
      latency_ns.push_back(sides[1].metrics(1).values(0));
      *stage.proof.add_default_measurements() = sides[0];
      *stage.proof.add_candidate_measurements() = sides[1];
      proof.Add(tuning::CostOf(objective, after.back()),
                tuning::CostOf(objective, before.back()));
    }
    progress.Finish();
    if (before.empty()) return failure;
    proof.Fill(&stage.proof);
    stage.before = Median(before);
    stage.after = Median(after);
    stage.latency_p99_ns = Median(latency_ns);
    if (!failure.ok()) return failure;
    // A change that was proven piece by piece stays unless it is slower as a
    // whole.
    stage.kept = must_gain ? proof.Claimed() : !proof.LostBy(0);
    stage.took = Took();
    if (stage.kept) as_ = stage.as;
    return absl::OkStatus();
  }

  static constexpr int kMostStages = 4;
  // An operator's own proof; the stage proves their gains as a whole once more.
  static constexpr absl::Duration kOperatorProof = absl::Seconds(3);

  const GraphTuneCommand& command_;
  const GraphTools& tools_;
  std::ostream& log_;
  ServedAs as_;
  absl::Duration began_;
  std::vector<GraphStage> stages_;
};

Table Ledger(const std::vector<GraphStage>& stages) {
  Table table({{"stage", Align::kLeft, "stage"},
               {"kept", Align::kLeft, "kept"},
               {"before", Align::kRight, "requests_per_second_before"},
               {"after", Align::kRight, "requests_per_second_after"},
               {"gain", Align::kRight, "gain"},
               {"at least", Align::kRight, "gain_low"},
               {"at most", Align::kRight, "gain_high"},
               {"rounds", Align::kRight, "rounds"},
               {"p99", Align::kRight, "latency_p99"},
               {"seconds", Align::kRight, "seconds"},
               {"changed", Align::kLeft, "changed", Clip::kFold}});
  const auto rate = [](double value) {
    return value == 0 ? Cell::None()
                      : Cell::Number(value, absl::StrFormat("%.0f/s", value));
  };
  const auto percent = [](bool known, double value) {
    return known ? Cell::Number(value, FormatChange(value)) : Cell::None();
  };
  for (const GraphStage& stage : stages) {
    const proto::Proof& proof = stage.proof;
    const double seconds = absl::ToDoubleSeconds(stage.took);
    table.AddRow({stage.name,
                  stage.failed ? "failed"
                  : stage.kept ? "yes"
                               : "no",
                  rate(stage.before), rate(stage.after),
                  percent(proof.has_gain(), proof.gain()),
                  percent(proof.has_gain_low(), proof.gain_low()),
                  percent(proof.has_gain_high(), proof.gain_high()),
                  Cell::Integer(proof.rounds()),
                  stage.latency_p99_ns == 0
                      ? Cell::None()
                      : Cell::Number(stage.latency_p99_ns,
                                     FormatDurationNs(stage.latency_p99_ns)),
                  Cell::Number(seconds, absl::StrFormat("%.0f", seconds)),
                  stage.changed});
  }
  return table;
}

// The powers of two up to `most`, and `more` values.
std::string Levels(int64_t most, const std::vector<int64_t>& more) {
  std::set<int64_t> levels(more.begin(), more.end());
  for (int64_t level = 1; level <= most; level *= 2) levels.insert(level);
  return absl::StrCat("ints: [", absl::StrJoin(levels, ", "), "]");
}

}  // namespace

std::string ServeSpace(const GraphTuneCommand& command, const ServedAs& as) {
  return absl::StrFormat(
      R"(knob { name: "batch" %s doc: "requests of a call" }
knob { name: "workers" %s doc: "copies of the model" }
knob { name: "threads" %s doc: "of each worker" }
constraint {
  expr: "workers * threads <= %d"
  why: "threads beyond the cores wait for each other"
}
default {
  set { knob: "batch" int: %d }
  set { knob: "workers" int: %d }
  set { knob: "threads" int: %d }
}
)",
      Levels(command.most_batch, {as.batch}),
      Levels(command.cores, {command.cores, as.workers}),
      Levels(command.cores, {command.cores, as.threads}), command.cores,
      as.batch, as.workers, as.threads);
}

std::vector<std::string> ServeArguments(const GraphTuneCommand& command,
                                        const ServedAs& as) {
  std::vector<std::string> arguments = {
      "graph",
      "serve",
      command.path,
      absl::StrCat("--p99_limit=", absl::FormatDuration(command.p99_limit)),
      absl::StrCat("--duration=", absl::FormatDuration(command.duration)),
      absl::StrCat("--max_wait=", absl::FormatDuration(command.max_wait)),
      absl::StrCat("--batch=", as.batch),
      absl::StrCat("--workers=", as.workers),
      absl::StrCat("--threads=", as.threads),
      absl::StrCat("--fuse=", as.fuse),
      "--format=json"};
  if (as.untuned) arguments.push_back("--untuned");
  arguments.insert(arguments.end(), command.imports.begin(),
                   command.imports.end());
  arguments.insert(arguments.end(), command.places.begin(),
                   command.places.end());
  return arguments;
}

proto::Run RunOfStages(const GraphTuneCommand& command,
                       const std::vector<GraphStage>& stages,
                       int64_t started_unix_ns, const RunContext& context) {
  const std::string suite = absl::StrCat("graph/", ModelName(command), "/tune");
  proto::Run run = EmptyRun(suite, started_unix_ns, proto::CPU, context);
  for (const GraphStage& stage : stages) {
    const std::string name = absl::StrCat(
        suite, "/p99_limit=", absl::FormatDuration(command.p99_limit), "/",
        stage.name, "/");
    for (const bool after : {false, true}) {
      const auto& readings = after ? stage.proof.candidate_measurements()
                                   : stage.proof.default_measurements();
      // Nothing was measured in a stage that failed before its first round.
      if (readings.empty()) continue;
      proto::BenchmarkResult& result = *run.add_results();
      result.mutable_key()->set_operator_name(
          absl::StrCat(name, after ? "after" : "before"));
      *result.mutable_measurements() = readings;
      result.set_outcome(proto::OK);
    }
  }
  return run;
}

absl::StatusOr<ExitCode> TuneGraph(const GraphTuneCommand& command,
                                   const GraphTools& tools, std::ostream& out,
                                   std::ostream& log) {
  std::error_code error;
  std::filesystem::create_directories(command.folder, error);
  if (error) {
    return absl::InternalError(
        absl::StrCat("making ", command.folder, ": ", error.message()));
  }
  // Two would take each other's journals, and measure each other's load.
  const absl::StatusOr<FileLock> lock = FileLock::Try(
      JoinPath(command.folder, absl::StrCat(ModelName(command), ".lock")));
  // A file that cannot be opened may have the same code.
  if (absl::IsFailedPrecondition(lock.status()) &&
      !FailedFileOf(lock.status()).has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        command.path, ": another graph tune of a model called ",
        ModelName(command),
        " is under way in this folder: ", lock.status().message(),
        "; next: wait until it has ended, or name another folder"));
  }
  if (!lock.ok()) return lock.status();
  // A space that is refused would be found after the stages before it.
  OPTRAIL_RETURN_IF_ERROR(CheckServeSpace(command));
  LayeredTuning tuning(command, tools, log);
  const absl::Status ran = tuning.Run();
  out << Ledger(tuning.stages()).Format(command.format, TerminalWidth());
  if (command.format == OutputFormat::kTable) {
    const double first = tuning.stages().front().before;
    double last = first;
    for (const GraphStage& stage : tuning.stages()) {
      if (stage.kept) last = stage.after;
    }
    if (first > 0) {
      out << absl::StrFormat(
                 "%.0f to %.0f requests/s with a 99th percentile of at most "
                 "%s\n",
                 first, last, absl::FormatDuration(command.p99_limit))
          << "next: optrail "
          << absl::StrJoin(ServeArguments(command, tuning.as()), " ",
                           [](std::string* text, const std::string& argument) {
                             text->append(QuoteForShell(argument));
                           })
          << "\n";
    }
  }
  const bool any_measured =
      std::any_of(tuning.stages().begin(), tuning.stages().end(),
                  [](const GraphStage& stage) {
                    return stage.proof.default_measurements_size() > 0;
                  });
  if (any_measured) {
    const absl::Status recorded = tools.record(tuning.stages());
    if (ran.ok()) OPTRAIL_RETURN_IF_ERROR(recorded);
    if (!recorded.ok()) log << "note: " << recorded.message() << "\n";
  }
  OPTRAIL_RETURN_IF_ERROR(ran);
  return ExitCode::kOk;
}

}  // namespace optrail::suites
