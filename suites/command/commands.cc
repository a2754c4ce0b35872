#include "suites/command/commands.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <set>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"
#include "ops/core/registry.h"
#include "suites/bench/backend_comparison.h"
#include "suites/bench/bench_driver.h"
#include "suites/bench/best_backend.h"
#include "suites/bench/google_benchmark_face.h"
#include "suites/command/command_flags.h"
#include "suites/command/dry_run.h"
#include "suites/preset/preset.h"
#include "suites/tune/task_store.h"
#include "suites/tune/tune_buckets.h"
#include "suites/tune/tune_driver.h"
#include "suites/workload/tasks.h"
#include "suites/workload/workload.h"
#include "tracker/history/history.h"
#include "tracker/workload/workload_time.h"
#include "tuning/session/results.h"

namespace optrail::suites {
namespace {

std::vector<std::string> Concat(
    std::initializer_list<std::vector<std::string>> lists) {
  std::vector<std::string> all;
  for (const std::vector<std::string>& list : lists) {
    for (const std::string& flag : list) {
      if (std::find(all.begin(), all.end(), flag) == all.end()) {
        all.push_back(flag);
      }
    }
  }
  return all;
}

// A winner that is proven against nothing, since the default computes something
// else or ends its process, is no success.
bool IsTuned(const TuneSummary& summary) {
  if (!summary.session.has_value()) return false;
  if (HasFront(*summary.session)) return true;
  if (!summary.session->has_winner()) return false;
  const proto::Finalist* fallback = DefaultFinalist(*summary.session);
  return fallback == nullptr || (fallback->outcome() != proto::WRONG_RESULT &&
                                 fallback->outcome() != proto::CRASHED);
}

// True if the machine was too busy to find a winner.
bool IsBusy(const TuneSummary& summary) {
  return summary.session.has_value() &&
         tuning::WhyNoWinner(*summary.session) == tuning::NoWinner::kBusy;
}

// True if an error stopped a search: a lost worker, a full disk.
bool BrokeOff(const std::vector<TuneSummary>& summaries) {
  return std::any_of(
      summaries.begin(), summaries.end(),
      [](const TuneSummary& summary) { return summary.broke_off; });
}

// Nothing else came of any config.
bool IsUnsupported(const TuneSummary& summary) {
  return summary.session.has_value() && !summary.session->trials().empty() &&
         std::all_of(summary.session->trials().begin(),
                     summary.session->trials().end(),
                     [](const proto::Trial& trial) {
                       return trial.outcome() == proto::UNSUPPORTED;
                     });
}

// What cannot run here is known before anything is tried and recorded. Fails if
// nothing can.
absl::Status LeaveOutUnavailable(std::vector<TaskEntry>& tasks) {
  std::vector<TaskEntry> available;
  std::set<std::string> why;
  for (const TaskEntry& task : tasks) {
    if (task.available.ok()) {
      available.push_back(task);
    } else {
      why.insert(absl::StrCat(task.task.operator_name(), " by ",
                              task.backend->name(), ": ",
                              task.available.message()));
    }
  }
  if (available.empty()) return tasks[0].available;
  for (const std::string& line : why) std::cerr << "left out: " << line << "\n";
  tasks = std::move(available);
  return absl::OkStatus();
}

// No error: a workspace may link fewer operators than a workload was made for.
void NoteUnknownPeers(const proto::Workload& workload) {
  std::set<std::string> known;
  for (const ops::OperatorEntry* entry : ops::Registry::Get().List(true)) {
    for (const auto& [name, backend] : entry->backends) known.insert(name);
  }
  for (const std::string& peer : workload.peers()) {
    if (known.count(peer) > 0) continue;
    std::cerr << "note: peers: \"" << SanitiseText(peer) << "\" of workload "
              << SanitiseText(workload.name())
              << " is no backend of any operator here; there are: "
              << absl::StrJoin(known, ", ") << "\n";
  }
}

void PrintHeader(const RunContext& context) {
  std::cerr << "hardware: " << context.hardware.id() << "; "
            << context.toolchain.compiler() << ", "
            << context.toolchain.compilation_mode() << "\n";
  if (!context.commit_note.empty()) {
    std::cerr << "note: " << context.commit_note << "\n";
  }
}

// Keeps a run that its history refused, so that it is not measured in vain.
absl::Status KeepElsewhere(const proto::Run& run, const absl::Status& refusal) {
  const char* temporary = std::getenv("TMPDIR");
  const std::string dir =
      JoinPath(temporary == nullptr ? "/tmp" : temporary, "optrail-unrecorded");
  absl::StatusOr<tracker::History> kept = tracker::History::Open(dir);
  if (!kept.ok() || !kept->AppendRun(run).ok()) return refusal;
  return absl::Status(
      refusal.code(),
      absl::StrCat(refusal.message(), "\nthe run is kept in ", dir,
                   "\nnext: make room, then optrail history merge ", dir));
}

absl::Status Record(const proto::Run& run, const RunContext& context) {
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::History::Open(context.history));
  const absl::Status appended = history.AppendRun(run);
  // A run that is resumed may have been recorded just before the end.
  if (!appended.ok() && !absl::IsAlreadyExists(appended)) {
    return KeepElsewhere(run, appended);
  }
  std::cerr << "recorded: run " << run.run_id() << ", " << run.results_size()
            << " benchmarks, "
            << (run.commit().id().empty()
                    ? "no commit"
                    : absl::StrCat("commit ", run.commit().id().substr(0, 12),
                                   run.commit().dirty() ? " with changes" : ""))
            << ", in " << history.dir() << "\n";
  return absl::OkStatus();
}

// The run has arrived: nobody has to go on with it.
void ForgetJournal(const MeasuredRun& measured) {
  if (measured.journal == nullptr) return;
  const absl::Status removed = measured.journal->Remove();
  if (!removed.ok()) std::cerr << "note: " << removed.message() << "\n";
}

// Ours beside other backends where there are any, and where another one is
// faster; the best one is kept.
void PrintBackends(const proto::Run& run, const RunContext& context,
                   std::ostream& out) {
  const auto comparisons = CompareBackends(run);
  if (comparisons.empty()) return;
  out << "\n"
      << ComparisonText(comparisons, TerminalWidth())
      << FasterThanOursText(comparisons);
  // What was measured stands, kept or not.
  const absl::Status kept = KeepBest(run, context);
  if (!kept.ok()) std::cerr << "note: " << kept.message() << "\n";
}

// Beside a format for programs, it is for the person who watches.
std::ostream& BesideBenchmarkFormat() {
  return BenchmarkFormatIsConsole() ? std::cout : std::cerr;
}

// The winners of all backends, or defaults where those stayed, in one
// interleaved bench: times of separate sessions do not compare.
absl::Status CompareWinners(const std::vector<TaskEntry>& tasks,
                            const std::string& op,
                            const proto::Workload& workload,
                            const RunContext& context) {
  if (tasks.empty()) return absl::OkStatus();
  OPTRAIL_ASSIGN_OR_RETURN(BenchDriverOptions options,
                           BenchFromFlags(workload, op));
  options.with_default = false;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<BenchCase> cases,
                           MakeBenchCases(tasks, context, options));
  OPTRAIL_ASSIGN_OR_RETURN(const MeasuredRun measured,
                           RunBenchmarks(cases, context, options));
  PrintBackends(measured.run, context,
                absl::GetFlag(FLAGS_format) == OutputFormat::kTable
                    ? std::cout
                    : std::cerr);
  OPTRAIL_RETURN_IF_ERROR(Record(measured.run, context));
  ForgetJournal(measured);
  return absl::OkStatus();
}

// What the workload takes, beside whatever else was printed of its run.
void PrintWorkloadTime(const proto::Run& run) {
  std::ostream& out = BesideBenchmarkFormat();
  for (const tracker::WorkloadTime& time : tracker::WorkloadTimes(run)) {
    out << "\n"
        << tracker::WorkloadTable(time).ToText(TerminalWidth())
        << tracker::WorkloadSummary(time);
  }
}

absl::StatusOr<int> TuneRange(const TunePlan& plan) {
  TuneBucketsCommand command{plan.context, plan.selection, *plan.range,
                             plan.options};
  command.format = absl::GetFlag(FLAGS_format);
  if (!plan.options.tune.budget.has_time_ns()) {
    DivideTimeBudget(absl::Nanoseconds(plan.options.total_time_ns) /
                         (2 * SessionsOf(*plan.range, command.random_shapes) *
                          static_cast<int64_t>(plan.tasks.size())),
                     &command.tune.tune.budget, &command.tune.tune.proof);
  }
  return RunTuneBuckets(command, std::cout, std::cerr);
}

absl::StatusOr<int> Tune(const std::string& op, const Preset& preset) {
  const bool dry_run = absl::GetFlag(FLAGS_dry_run);
  OPTRAIL_ASSIGN_OR_RETURN(const TunePlan plan,
                           MakeTunePlan(op, preset, dry_run, std::cerr));
  if (dry_run) return DryRunTune(plan, op, std::cout, std::cerr);
  if (plan.range.has_value()) return TuneRange(plan);
  const proto::Workload& workload = plan.workload;
  const TaskSelection& selection = plan.selection;
  const TuneDriverOptions& options = plan.options;
  const RunContext& context = plan.context;
  std::vector<TaskEntry> tasks = plan.tasks;
  const size_t selected = tasks.size();
  if (options.elsewhere.empty()) {
    OPTRAIL_RETURN_IF_ERROR(LeaveOutUnavailable(tasks));
  }
  const absl::Time start = absl::Now();
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TuneSummary> summaries,
                           TuneTasks(tasks, context, options));
  std::cout << FormatTuneSummaries(summaries, absl::GetFlag(FLAGS_format))
            << FormatFronts(summaries, absl::GetFlag(FLAGS_format));
  std::cerr << FailuresText(summaries)
            << TimeText(summaries, absl::Now() - start);
  if (!workload.name().empty() || options.total_trials > 0 ||
      options.total_time_ns > 0) {
    std::cerr << WorkloadTotalText(summaries);
  }
  if (WantsAllBackends(selection.backend)) {
    std::set<std::string> tuned_now;
    for (const TuneSummary& summary : summaries) {
      if (!summary.skipped) tuned_now.insert(ShortTaskText(summary.task));
    }
    OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                             LoadStore(context, tasks));
    const auto is_new = [&](const TaskEntry& task) {
      return tuned_now.count(ShortTaskText(task.task)) > 0;
    };
    OPTRAIL_RETURN_IF_ERROR(CompareWinners(ToBeCompared(tasks, is_new, store),
                                           op, workload, context));
  }
  // An error that stopped a search is no finding about a config.
  if (BrokeOff(summaries)) return ToInt(ExitCode::kBadInput);
  bool failed =
      !WantsAllBackends(selection.backend) && tasks.size() != selected;
  bool busy = false;
  for (const TuneSummary& summary : summaries) {
    if (summary.skipped || IsTuned(summary) ||
        (WantsAllBackends(selection.backend) && IsUnsupported(summary))) {
      continue;
    }
    (IsBusy(summary) ? busy : failed) = true;
  }
  return ToInt(failed ? ExitCode::kCheckFailed
               : busy ? ExitCode::kNotEnoughData
                      : ExitCode::kOk);
}

absl::StatusOr<int> Bench(const std::string& op) {
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Workload workload, WorkloadFromFlags());
  OPTRAIL_ASSIGN_OR_RETURN(
      TaskSelection selection,
      SelectionFromFlags(op, absl::GetFlag(FLAGS_workload)));
  selection.peers = {workload.peers().begin(), workload.peers().end()};
  NoteUnknownPeers(workload);
  const bool best = selection.backend == kBestBackend;
  if (best) selection.backend = kAllBackends;
  OPTRAIL_ASSIGN_OR_RETURN(const BenchDriverOptions options,
                           BenchFromFlags(workload, op));
  OPTRAIL_ASSIGN_OR_RETURN(const RunContext context, RunContextFromFlags());
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<TaskEntry> tasks,
                           SelectTasks(selection, context.hardware));
  if (best) {
    OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                             LoadStore(context, tasks));
    tasks = ChooseBest(tasks, store);
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<BenchCase> cases,
                           MakeBenchCases(tasks, context, options));
  if (BenchmarkListTests()) {
    for (const BenchCase& bench : cases) {
      std::cout << BenchmarkNameOf(bench.result) << "\n";
    }
    return 0;
  }
  if (absl::GetFlag(FLAGS_record)) {
    if (options.bench.zero_inputs) {
      return absl::InvalidArgumentError(
          "flag --inputs=zeros: its times and joules are no points of a "
          "series; "
          "expected it without --record");
    }
    OPTRAIL_RETURN_IF_ERROR(tracker::CheckHistoryIsWritable(context.history));
  }
  PrintHeader(context);
  OPTRAIL_ASSIGN_OR_RETURN(const MeasuredRun measured,
                           RunBenchmarks(cases, context, options));
  const proto::Run& run = measured.run;
  OPTRAIL_RETURN_IF_ERROR(ReportToGoogleBenchmark(run, std::cout));
  PrintBackends(run, context, BesideBenchmarkFormat());
  PrintWorkloadTime(run);
  if (absl::GetFlag(FLAGS_record)) {
    OPTRAIL_RETURN_IF_ERROR(Record(run, context));
  }
  ForgetJournal(measured);
  // What was asked for by name has to be there.
  const bool peers_may_lack = !best && (selection.backend.empty() ||
                                        WantsAllBackends(selection.backend));
  return ToInt(ExitCodeOfRun(run, peers_may_lack));
}

}  // namespace

Command TuneCommand(const std::string& op) {
  Command command;
  command.name = "tune";
  command.summary = "Tunes operators per shape on this machine.";
  command.details = absl::StrCat(
      "Each task, an operator with a shape, is searched within its budget; "
      "the\n"
      "best configs are measured again in fresh processes, interleaved with "
      "the\n"
      "default config, before one wins. Winners go to the store, sessions to "
      "the\n"
      "history. Interrupt it at any time: the same command goes on from "
      "there.\n"
      "With --backend=all each backend has a session, the winners meet in one\n"
      "interleaved bench, and the store keeps which is best.\n"
      "Exit code 1: for some task no config could be measured and proven, such "
      "as\nwhere every config failed; the others keep their winners.\n"
      "\n",
      op.empty()
          ? "  optrail tune --op=matmul --shape=m=384 --time_budget=30s\n"
          : absl::StrCat("  ", op, "_tune --time_budget=30s\n"),
      "\n"
      "With a total, trials go where a run of the workload gains most:\n"
      "\n",
      op.empty() ? "  optrail tune --workload=smoke --total_time=5m\n"
                 : absl::StrCat("  ", op, "_tune --total_time=5m\n"),
      "\n"
      "A preset says what to tune and how for a kind of model; --dry_run "
      "prints "
      "it\n"
      "all, and measures nothing:\n"
      "\n",
      op.empty() ? "  optrail tune --preset=recommender --dry_run\n"
                 : absl::StrCat("  ", op,
                                "_tune --preset=my.preset.textproto "
                                "--dry_run\n"),
      "\n"
      "A range of shapes gets a few configs and the boundaries between them:\n"
      "\n  ",
      op.empty() ? "optrail tune --op=softmax" : absl::StrCat(op, "_tune"),
      " --shape=rows=1..512,cols=384/f32 --trials=20\n");
  command.flags = Concat({{"preset", "dry_run"},
                          SelectionFlags(),
                          TuneFlags(),
                          PlaceFlags(),
                          {"format", "quiet"}});
  if (!op.empty()) {
    command.flags.erase(
        std::find(command.flags.begin(), command.flags.end(), "op"));
  }
  // It is read once: the file may be a pipe, or be edited meanwhile.
  const auto preset = std::make_shared<Preset>();
  command.settings.flag = "preset";
  command.settings.read =
      [preset](
          const std::string& name) -> absl::StatusOr<std::vector<FlagSetting>> {
    OPTRAIL_ASSIGN_OR_RETURN(*preset, FindPreset(name));
    return preset->settings;
  };
  command.run = [op, preset](const std::vector<std::string>&) {
    return Tune(op, absl::GetFlag(FLAGS_preset).empty() ? Preset() : *preset);
  };
  return command;
}

Command BenchCommand(const std::string& op) {
  Command command;
  command.name = "bench";
  command.summary =
      "Benchmarks operators with their default and tuned configs.";
  command.details = absl::StrCat(
      "Every benchmark is measured in several fresh processes, checked "
      "against\n"
      "the reference each time. Prints Google Benchmark's table or JSON.\n"
      "What was interrupted or killed goes on with --resume.\n"
      "Exit code 1: a benchmark failed; 3: the machine was too busy for one.\n"
      "\n",
      op.empty()
          ? "  optrail bench --op=softmax --record\n"
            "  optrail bench --op=matmul --config=\"mr=4,...\" --record\n"
            "  optrail bench --op=matmul --shape=m=512 --backend=all\n"
            "  optrail bench --workload=smoke --benchmark_out=smoke.json\n"
          : absl::StrCat("  ", op, "_bench --record\n  ", op,
                         "_bench --backend=all --benchmark_out=", op,
                         ".json\n"));
  command.flags = Concat({SelectionFlags(),
                          BenchFlags(),
                          PlaceFlags(),
                          {"quiet"},
                          GoogleBenchmarkFlags()});
  if (!op.empty()) {
    command.flags.erase(
        std::find(command.flags.begin(), command.flags.end(), "op"));
  }
  command.run = [op](const std::vector<std::string>&) { return Bench(op); };
  return command;
}

Command WorkerCommand() {
  Command command;
  command.name = "worker";
  command.summary = "Measures for `tune --worker` of another process.";
  command.details =
      "Serves one session after another until it is killed. The driver is of "
      "the\n"
      "same build, on the same kind of hardware, with the same limits, else it "
      "is\n"
      "told who is not. A socket in the file system is its owner's alone; "
      "HOST:PORT\n"
      "is this machine's unless --allow_network is given.\n"
      "\n"
      "  worker --listen=unix:/tmp/worker &\n"
      "  tune --op=softmax --worker=unix:/tmp/worker\n";
  command.flags = {
      "listen",         "allow_network", "device", "config_deadline",
      "max_config_mib", "history",       "store"};
  command.run = [](const std::vector<std::string>&) -> absl::StatusOr<int> {
    OPTRAIL_ASSIGN_OR_RETURN(ServeOptions options, ServeFromFlags());
    OPTRAIL_ASSIGN_OR_RETURN(const RunContext context, RunContextFromFlags());
    options.worker.shared_folder = context.state;
    OPTRAIL_RETURN_IF_ERROR(ServeSessions(options, std::cerr));
    return 0;
  };
  return command;
}

std::vector<std::string> SuiteFlags() {
  return Concat(
      {{"shape", "op", "threads", "device", "cache", "launch", "objective"},
       TuneFlags(),
       PlaceFlags(),
       {"quiet", "resume"},
       GoogleBenchmarkFlags()});
}

absl::StatusOr<SuiteResult> RunSuite(const std::string& name) {
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Workload workload, FindWorkload(name));
  OPTRAIL_ASSIGN_OR_RETURN(TaskSelection selection,
                           SelectionFromFlags("", name));
  OPTRAIL_ASSIGN_OR_RETURN(TuneDriverOptions tune_options,
                           TuneFromFlags(workload));
  OPTRAIL_ASSIGN_OR_RETURN(const BenchDriverOptions bench_options,
                           BenchFromFlags(workload, ""));
  SuiteResult result;
  OPTRAIL_ASSIGN_OR_RETURN(result.context, RunContextFromFlags());
  tune_options.worker.shared_folder = result.context.state;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TaskEntry> tasks,
                           SelectTasks(selection, result.context.hardware));
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckHistoryIsWritable(result.context.history));
  PrintHeader(result.context);

  const absl::Time start = absl::Now();
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TuneSummary> summaries,
                           TuneTasks(tasks, result.context, tune_options));
  const int64_t skipped =
      std::count_if(summaries.begin(), summaries.end(),
                    [](const TuneSummary& summary) { return summary.skipped; });
  if (skipped == static_cast<int64_t>(summaries.size())) {
    std::cerr << "tuning: nothing to do, all " << skipped
              << " tasks are in the store\n";
  } else {
    std::cout << FormatTuneSummaries(summaries, OutputFormat::kTable) << "\n";
    std::cerr << FailuresText(summaries)
              << TimeText(summaries, absl::Now() - start);
    std::cerr << WorkloadTotalText(summaries);
  }

  // Libraries have nothing to tune, but the model's time by them is asked for.
  selection.peers = {workload.peers().begin(), workload.peers().end()};
  NoteUnknownPeers(workload);
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TaskEntry> with_peers,
                           SelectTasks(selection, result.context.hardware));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<BenchCase> cases,
      MakeBenchCases(with_peers, result.context, bench_options));
  OPTRAIL_ASSIGN_OR_RETURN(const MeasuredRun measured,
                           RunBenchmarks(cases, result.context, bench_options));
  const proto::Run& run = measured.run;
  OPTRAIL_RETURN_IF_ERROR(ReportToGoogleBenchmark(run, std::cout));
  PrintBackends(run, result.context, BesideBenchmarkFormat());
  PrintWorkloadTime(run);
  std::cout.flush();
  OPTRAIL_RETURN_IF_ERROR(Record(run, result.context));
  ForgetJournal(measured);
  result.run_id = run.run_id();
  result.exit_code = ExitCodeOfRun(run, /*peers_may_lack=*/true);
  if (BrokeOff(summaries)) result.exit_code = ExitCode::kBadInput;
  return result;
}

}  // namespace optrail::suites
