#include "suites/bench/bench_driver.h"

#include <algorithm>
#include <iostream>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/interrupt_note.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "base/text/progress.h"
#include "base/text/prose.h"
#include "ops/core/built_from.h"
#include "ops/core/device_type.h"
#include "ops/core/registry.h"
#include "suites/bench/google_benchmark_face.h"
#include "suites/tune/task_store.h"
#include "suites/worker/measurement_settings.h"
#include "tracker/history/history.h"
#include "tracker/series/labels.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/roofline.h"
#include "tuning/store/store.h"

namespace optrail::suites {
namespace {

using tuning::CanonicalText;

BenchCase MakeCase(const TaskEntry& task, proto::ConfigSelection selection,
                   const proto::Config& config, proto::ConfigSource source) {
  BenchCase bench;
  bench.task = task.task;
  bench.config = config;
  proto::BenchmarkKey* key = bench.result.mutable_key();
  key->set_operator_name(task.task.operator_name());
  key->set_device_kind(task.task.device_kind());
  *key->mutable_shape() = task.task.shape();
  key->set_selection(selection);
  key->set_threads(task.task.threads());
  key->set_cache_mode(task.task.cache_mode());
  key->set_backend(task.task.backend());
  key->set_launch_mode(task.task.launch_mode());
  if (task.task.devices() > 1) key->set_devices(task.task.devices());
  key->set_version(task.entry->op->version());
  if (task.as_best) {
    // The winner is an attribute: another one continues the series.
    key->set_backend(kBestBackend);
    bench.result.set_resolved_backend(task.backend->name());
  }
  if (!task.available.ok()) {
    // Nothing is started for it, and its row says why.
    bench.result.set_outcome(proto::UNSUPPORTED);
    bench.result.set_detail(std::string(task.available.message()));
  } else {
    bench.result.set_library(task.backend->library());
  }
  bench.result.set_config(CanonicalText(config));
  bench.result.set_config_source(source);
  bench.result.set_kernel_id(task.task.kernel_id());
  bench.result.set_flop(task.entry->op->Flop(task.task.shape()));
  bench.result.set_moved_bytes(task.entry->op->MovedBytes(task.task.shape()));
  if (!task.doc.empty()) bench.result.add_labels(task.doc);
  return bench;
}

// What the store answers for a task: the config and where it is from.
BenchCase TunedCase(const TaskEntry& task, const TaskSpace& space,
                    const tuning::TunedConfigStore& store,
                    const BenchDriverOptions& options) {
  const std::string& objective = options.objective;
  tuning::LookupRequest request = tuning::RequestOf(task.task);
  request.objective = objective;
  const auto is_valid = [&](const proto::Config& config) {
    return space.Validate(config).ok();
  };
  const auto beats_default = [&](const proto::Config& config) {
    return space.configs == nullptr && space.bound->PriorPrefers(config);
  };
  const tuning::ConfigPredicate valid(is_valid), beats(beats_default);
  request.is_valid = &valid;
  request.beats_default = &beats;
  const tuning::LookupResult found = store.Lookup(request);
  if (found.source == tuning::LookupSource::kDefault) {
    BenchCase bench =
        MakeCase(task, proto::TUNED, space.bound->default_config(),
                 proto::FALLBACK_TO_DEFAULT);
    bench.result.mutable_key()->set_objective(objective);
    // UntunedNote says that nothing is tuned.
    if (!absl::StartsWith(found.warning, "no tuned config fits")) {
      bench.substituted = found.warning;
    }
    return bench;
  }
  const proto::ConfigSource source =
      found.source == tuning::LookupSource::kExact    ? proto::EXACT_SHAPE
      : found.source == tuning::LookupSource::kBucket ? proto::SHAPE_IN_BUCKET
                                                      : proto::NEAREST_SHAPE;
  // A bucket of the default: that of this shape.
  BenchCase bench = MakeCase(
      task, proto::TUNED,
      found.config == nullptr ? space.bound->default_config() : *found.config,
      source);
  bench.result.mutable_key()->set_objective(objective);
  bench.result.set_tuning_session_id(found.tuned->session_id());
  bench.substituted = found.warning;
  if (found.unverified && found.source == tuning::LookupSource::kExact) {
    const std::string label = absl::StrCat(
        tracker::kUnverifiedLabel, ": tuned with kernel ",
        found.tuned->kernel_id().empty() ? "of no id"
                                         : found.tuned->kernel_id());
    bench.result.add_labels(label);
    absl::StrAppend(&bench.substituted, found.warning.empty() ? "" : "; ",
                    label, ", not with this one; next: ", options.tune_command);
  }
  return bench;
}

// Times that CeilingsOf is asked again; it keeps the highest readings.
constexpr int kCeilingReadings = 3;
void SetRooflineFractions(proto::Run& run) {
  for (proto::BenchmarkResult& result : *run.mutable_results()) {
    std::vector<double> medians_ns;
    for (const proto::Measurement& measurement : result.measurements()) {
      if (measurement.has_median_ns()) {
        medians_ns.push_back(measurement.median_ns());
      }
    }
    const bool hot = result.key().cache_mode() == proto::HOT;
    const tuning::Roofline roofline = tuning::RooflineOf(
        result.flop(), result.moved_bytes(), hot ? result.moved_bytes() : 0,
        run.hardware(), run.ceilings(), result.key().threads(),
        run.hardware().cores());
    if (result.outcome() == proto::OK && roofline.time_ns > 0) {
      result.set_roofline_fraction(roofline.time_ns / Median(medians_ns));
    }
  }
}

std::vector<std::string> BeyondRoofline(const proto::Run& run) {
  std::vector<std::string> names;
  for (const proto::BenchmarkResult& result : run.results()) {
    if (!tracker::IsBoundByRoofline(result.roofline_fraction())) {
      names.push_back(tracker::DisplayName(result.key()));
    }
  }
  return names;
}

constexpr char kInterruptedBench[] =
    "interrupted: what was measured is kept, and the same command with "
    "--resume goes on from there";

// Everything that a reading depends on, and what makes readings one run.
std::string IdentityOf(const std::vector<BenchCase>& cases,
                       const proto::Run& run,
                       const BenchDriverOptions& options) {
  std::string identity = absl::StrCat(
      run.suite(), "\n", run.workload(), "\n", run.hardware().id(), "\n",
      run.commit().id(), "\n", run.settings().ShortDebugString(), "\n",
      options.bench.random_interleaving ? options.bench.seed : 0, "\n",
      options.objective, "\n", options.pairing_id, "\n", options.round, "\n");
  for (const BenchCase& bench : cases) {
    absl::StrAppend(&identity, BenchmarkNameOf(bench.result), "\t",
                    tuning::TaskText(bench.task), "\t", bench.result.config(),
                    "\n");
  }
  return identity;
}

// Files that kernels among `cases` were built from and that have changed in the
// workspace since.
std::vector<std::string> ChangedSourcesOf(const std::vector<BenchCase>& cases,
                                          const std::string& workspace) {
  std::set<std::pair<std::string, std::string>> seen;
  std::set<std::string> changed;
  for (const BenchCase& bench : cases) {
    const proto::Task& task = bench.task;
    const std::string backend = task.backend().empty()
                                    ? ops::OwnBackendName(task.device_kind())
                                    : task.backend();
    if (!seen.insert({task.operator_name(), backend}).second) continue;
    for (std::string& path :
         ops::ChangedSources(task.operator_name(), backend, workspace)) {
      changed.insert(std::move(path));
    }
  }
  return {changed.begin(), changed.end()};
}

// Null, and a note, where nothing can be kept: no reason not to measure.
absl::StatusOr<std::unique_ptr<BenchJournal>> OpenJournal(
    const std::vector<BenchCase>& cases, const RunContext& context,
    const proto::Run& run, const BenchDriverOptions& options) {
  proto::BenchJournalRecord::Header header;
  header.set_run_id(run.run_id());
  header.set_started_unix_ns(run.started_unix_ns());
  header.set_processes(run.settings().processes() *
                       static_cast<int>(cases.size()));
  absl::StatusOr<std::unique_ptr<BenchJournal>> journal = BenchJournal::Open(
      JoinPath(context.state, "bench"), IdentityOf(cases, run, options), header,
      options.resume);
  if (!journal.ok() && options.resume) {
    return absl::Status(
        journal.status().code(),
        absl::StrCat(journal.status().message(),
                     absl::IsFailedPrecondition(journal.status())
                         ? "; next: let it end, or measure anew"
                         : "; next: measure anew",
                     ", without --resume"));
  }
  if (!journal.ok()) {
    std::cerr << "note: not kept, should this be interrupted: "
              << journal.status().message() << "\n";
    return nullptr;
  }
  const int found = (*journal)->found();
  if (found > 0) {
    std::cerr << (options.resume ? "goes on: " : "note: begins anew: ") << found
              << " of " << header.processes()
              << " processes were measured by a command that was interrupted"
              << (options.resume ? "" : "; --resume would have gone on")
              << "\n";
  } else if (options.resume) {
    std::cerr << "note: nothing to resume: no interrupted command of this "
                 "binary at this commit had these benchmarks, configs and "
                 "settings\n";
  }
  return journal;
}

// The cases of one task; the given config among them if it `runs` there.
std::vector<BenchCase> CasesOf(const TaskEntry& task, const TaskSpace& space,
                               bool given_runs,
                               const tuning::TunedConfigStore& store,
                               const BenchDriverOptions& options) {
  std::vector<BenchCase> cases;
  const bool given_replaces_tuned = given_runs && options.given_name.empty();
  if (options.with_default) {
    cases.push_back(MakeCase(task, proto::DEFAULT,
                             space.bound->default_config(),
                             proto::FALLBACK_TO_DEFAULT));
    cases.back().substituted = space.bound->default_refusal();
  }
  // An operator without a choice is one benchmark, not the same one twice.
  if (options.with_tuned && !given_replaces_tuned &&
      (space.has_choice || !options.with_default)) {
    cases.push_back(TunedCase(task, space, store, options));
    cases.back().has_choice = space.has_choice;
  }
  if (given_runs) {
    BenchCase given =
        MakeCase(task, given_replaces_tuned ? proto::TUNED : proto::NAMED,
                 *options.given_config, proto::GIVEN);
    given.result.mutable_key()->set_config_name(options.given_name);
    if (given_replaces_tuned) {
      given.result.mutable_key()->set_objective(options.objective);
    }
    cases.push_back(std::move(given));
  }
  return cases;
}

}  // namespace

absl::StatusOr<std::vector<BenchCase>> MakeBenchCases(
    const std::vector<TaskEntry>& tasks, const RunContext& context,
    const BenchDriverOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                           LoadStore(context, tasks));
  std::vector<BenchCase> cases;
  int given_count = 0;        // shapes for which the given config is valid
  std::string given_problem;  // why it is not valid for the last of the others
  for (const TaskEntry& task : tasks) {
    OPTRAIL_ASSIGN_OR_RETURN(const TaskSpace space,
                             BindTask(task, context.hardware));
    bool given_runs = options.given_config.has_value();
    if (given_runs) {
      const absl::Status valid = space.Validate(*options.given_config);
      if (valid.ok()) {
        ++given_count;
      } else {
        given_runs = false;
        given_problem =
            absl::StrCat(ShortTaskText(task.task), ": ", valid.message());
      }
    }
    for (BenchCase& bench : CasesOf(task, space, given_runs, store, options)) {
      if (MatchesBenchmarkFilter(BenchmarkNameOf(bench.result))) {
        cases.push_back(std::move(bench));
      }
    }
  }
  if (!given_problem.empty()) {
    const std::string problem = absl::StrCat("--config for ", given_problem);
    if (given_count == 0) return absl::InvalidArgumentError(problem);
    std::cerr << "note: --config runs for " << given_count << " of "
              << tasks.size() << " shapes, the others run as tuned; " << problem
              << "\n";
  }
  if (cases.empty()) {
    return absl::NotFoundError(
        "--benchmark_filter matches no benchmark; --benchmark_list_tests "
        "prints their names");
  }
  std::cerr << SubstitutedNotes(cases)
            << UntunedNote(cases, options.tune_command);
  return cases;
}

std::string SubstitutedNotes(const std::vector<BenchCase>& cases) {
  constexpr int kNamed = 3;
  std::string notes;
  int count = 0;
  for (const BenchCase& bench : cases) {
    if (bench.substituted.empty() || ++count > kNamed) continue;
    absl::StrAppend(&notes, "note: ", ShortTaskText(bench.task), ": ",
                    bench.substituted, "\n");
  }
  if (count > kNamed) {
    absl::StrAppend(&notes, "note: ", count - kNamed,
                    " more tasks run with another config than their own\n");
  }
  return notes;
}

std::string UntunedNote(const std::vector<BenchCase>& cases,
                        const std::string& tune_command) {
  constexpr int kNamed = 2;
  int tuned = 0;
  std::vector<std::string> missing;
  for (const BenchCase& bench : cases) {
    if (bench.result.key().selection() != proto::TUNED || !bench.has_choice) {
      continue;
    }
    ++tuned;
    if (bench.result.config_source() == proto::FALLBACK_TO_DEFAULT) {
      missing.push_back(ShortTaskText(bench.task));
    }
  }
  if (missing.empty()) return "";
  const int count = static_cast<int>(missing.size());
  missing.resize(std::min(count, kNamed));
  return absl::StrCat(
      "note: ", count, " of ", tuned,
      " tasks have no tuned config and run with the default one: ",
      absl::StrJoin(missing, "; "), count > kNamed ? "; ..." : "",
      "\n  next: ", tune_command, "\n");
}

namespace {

// All of a run that is known before it is measured.
proto::Run BegunRun(const std::vector<BenchCase>& cases,
                    const RunContext& context,
                    const BenchDriverOptions& options,
                    const proto::SamplingOptions& sampling) {
  proto::Run run;
  run.set_started_unix_ns(Clock::Real()->WallNs());
  run.set_run_id(tracker::NewRecordId(run.started_unix_ns()));
  run.set_suite(options.suite);
  run.set_source("optrail");
  run.set_workload(options.workload.name());
  *run.mutable_workload_layers() = options.workload.layer();
  *run.mutable_commit() = context.commit;
  if (const auto changed = ChangedSourcesOf(cases, context.workspace);
      !changed.empty()) {
    // It is not that commit's code that is measured.
    run.mutable_commit()->set_dirty(true);
    std::cerr << "note: this binary was built from other sources than those "
                 "here: "
              << JoinFirst(changed, /*most=*/1) << "; next: build again\n";
  }
  *run.mutable_hardware() = context.hardware;
  *run.mutable_toolchain() = context.toolchain;
  *run.mutable_ceilings() = RecentCeilings(context);
  *run.mutable_settings() =
      SettingsOf(sampling, options.worker, context.hardware.device_kind());
  run.mutable_settings()->set_processes(options.bench.processes);
  run.mutable_settings()->set_attempts_per_process(kBenchAttempts);
  run.set_pairing_id(options.pairing_id);
  return run;
}

void AddResults(std::vector<proto::BenchmarkResult> results, int round,
                proto::Run& run) {
  for (proto::BenchmarkResult& result : results) {
    if (round > 0) {
      for (proto::Measurement& measurement : *result.mutable_measurements()) {
        measurement.set_round(round);
      }
    }
    *run.add_results() = std::move(result);
  }
}

// Reads the ceilings again where something was faster: they were read while
// others used the machine.
void CompareWithRoofline(const RunContext& context, bool quiet,
                         proto::Run& run) {
  SetRooflineFractions(run);
  for (int i = 0; i < kCeilingReadings && !BeyondRoofline(run).empty(); ++i) {
    if (i == 0 && !quiet) {
      std::cerr << "measuring the ceilings of this machine again, since "
                << BeyondRoofline(run)[0] << " was faster\n";
    }
    *run.mutable_ceilings() = CeilingsOf(context);
    SetRooflineFractions(run);
  }
  if (const auto beyond = BeyondRoofline(run); !beyond.empty()) {
    std::cerr << "note: " << beyond.size() << " of " << run.results_size()
              << " have no share of a roofline, such as " << beyond[0] << "; "
              << tracker::kNoBoundText << "\n";
  }
}

}  // namespace

absl::StatusOr<MeasuredRun> RunBenchmarks(const std::vector<BenchCase>& cases,
                                          const RunContext& context,
                                          const BenchDriverOptions& options) {
  const int64_t start_ns = Clock::Real()->NowNs();
  BenchOptions bench = options.bench;
  if (const auto type = ops::FindDeviceType(context.hardware.device_kind());
      type.ok()) {
    bench.sampling.set_min_sample_ns(std::max(
        bench.sampling.min_sample_ns(), (*type)->policy().round_sample_ns));
  }
  MeasuredRun measured;
  measured.run = BegunRun(cases, context, options, bench.sampling);
  proto::Run& run = measured.run;
  OPTRAIL_ASSIGN_OR_RETURN(measured.journal,
                           OpenJournal(cases, context, run, options));
  bench.journal = measured.journal.get();
  if (bench.journal != nullptr) {
    run.set_run_id(bench.journal->header().run_id());
    run.set_started_unix_ns(bench.journal->header().started_unix_ns());
    bench.elapsed_ns = bench.journal->elapsed_ns();
  }
  absl::optional<InterruptNote> note;
  if (bench.journal != nullptr) note.emplace(kInterruptedBench);

  WorkerOptions worker = options.worker;
  worker.shared_folder = context.state;
  bench.metrics = options.metrics;
  ProgressOptions progress_options;
  progress_options.quiet = options.quiet;
  Progress progress("benchmarking",
                    static_cast<int64_t>(cases.size()) * bench.processes,
                    progress_options);
  const int64_t planned = progress.total();
  bench.on_progress = [&](int done, int total, const std::string& name) {
    progress.SetTotal(total);
    progress.Update(done - 1,
                    absl::StrCat(done > planned ? "again " : "", name));
  };
  std::vector<proto::BenchmarkResult> results = RunBenchSession(
      cases, bench, [&](const proto::Task& task) -> std::unique_ptr<Evaluator> {
        return std::make_unique<WorkerEvaluator>(task, worker);
      });
  progress.Update(progress.total());
  progress.Finish();

  AddResults(std::move(results), options.round, run);
  CompareWithRoofline(context, options.quiet, run);
  run.set_elapsed_ns(bench.elapsed_ns + Clock::Real()->NowNs() - start_ns);
  return measured;
}

ExitCode ExitCodeOfRun(const proto::Run& run, bool peers_may_lack) {
  ExitCode code = ExitCode::kOk;
  for (const proto::BenchmarkResult& result : run.results()) {
    if (result.outcome() == proto::CONTENDED) {
      code = ExitCode::kNotEnoughData;
    } else if (result.outcome() == proto::UNSUPPORTED && peers_may_lack &&
               !result.key().backend().empty()) {
      continue;
    } else if (result.outcome() != proto::OK) {
      return ExitCode::kCheckFailed;
    }
  }
  return code;
}

}  // namespace optrail::suites
