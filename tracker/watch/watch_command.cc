#include "tracker/watch/watch_command.h"

#include <iostream>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/process/host_name.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "tracker/history/history.h"
#include "tracker/history/record.h"
#include "tracker/import/import.h"
#include "tracker/series/commit.h"
#include "tracker/watch/failures.h"

namespace optrail::tracker {
namespace {

// The commits of which the history has a run of this suite on this hardware.
absl::StatusOr<std::set<std::string>> Recorded(const WatchCommand& options,
                                               const History& history) {
  RunFilter filter;
  filter.suite = options.suite;
  filter.hardware_id = options.hardware.id();
  OPTRAIL_ASSIGN_OR_RETURN(const RunList list, history.ListRuns(filter));
  std::set<std::string> commits;
  for (const RunInfo& run : list.runs) {
    if (!run.header.commit().dirty()) commits.insert(run.header.commit().id());
  }
  return commits;
}

class Watch {
 public:
  Watch(const WatchCommand& options, CommitBuilder& builder,
        const History& history, Failures& failures)
      : options_(options),
        builder_(builder),
        history_(history),
        failures_(failures) {}

  absl::StatusOr<int> Run(std::ostream& out) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> range,
                             builder_.trees().Range(options_.range));
    OPTRAIL_ASSIGN_OR_RETURN(const std::set<std::string> recorded,
                             Recorded(options_, history_));
    std::vector<std::string> gaps;
    int known = 0, skipped = 0;
    for (const std::string& commit : range) {
      if (recorded.count(commit) > 0) {
        ++known;
      } else if (!options_.retry_failed && failures_.Of(commit) != nullptr) {
        ++skipped;
        AddRow(commit, "skipped", *failures_.Of(commit));
      } else {
        gaps.push_back(commit);
      }
    }
    if (options_.limit > 0 && static_cast<int>(gaps.size()) > options_.limit) {
      gaps.resize(options_.limit);
    }
    std::cerr << range.size() << " commits, " << known << " measured before, "
              << skipped << " skipped as they failed before, " << gaps.size()
              << " to measure\n";
    int measured = 0;
    for (size_t i = 0; i < gaps.size(); ++i) {
      if (options_.dry_run) {
        AddRow(gaps[i], "to measure", "");
        continue;
      }
      OPTRAIL_ASSIGN_OR_RETURN(const bool is_measured,
                               Measure(gaps[i], i, gaps.size()));
      measured += is_measured;
    }
    PrintTable(table_, options_.common.format, out);
    return !options_.dry_run && !gaps.empty() && measured == 0 ? 3 : 0;
  }

 private:
  void AddRow(const std::string& commit, const std::string& outcome,
              const std::string& detail) {
    table_.AddRow({commit.substr(0, 12), outcome, detail,
                   builder_.trees().Subject(commit)});
  }

  absl::StatusOr<bool> Fail(const std::string& commit,
                            const std::string& what) {
    std::cerr << commit.substr(0, 12)
              << " is skipped from now on: " << EscapeForTerminal(what)
              << " (--retry_failed tries again)\n";
    AddRow(commit, "failed", what);
    OPTRAIL_RETURN_IF_ERROR(failures_.Add(commit, what));
    return false;
  }

  // Returns whether it could be measured. Errors are those after which nothing
  // can go on.
  absl::StatusOr<bool> Measure(const std::string& commit, size_t index,
                               size_t count) {
    if (!options_.quiet) {
      std::cerr << "commit " << index + 1 << " of " << count << ": "
                << commit.substr(0, 12) << " "
                << EscapeForTerminal(builder_.trees().Subject(commit)) << "\n";
    }
    const absl::StatusOr<Built> built = builder_.Build(commit, Slot::kProbe);
    if (absl::IsNotFound(built.status()) ||
        absl::IsFailedPrecondition(built.status())) {
      if (!options_.quiet) std::cerr << built.status().message() << "\n";
      return Fail(commit, "does not build");
    }
    OPTRAIL_RETURN_IF_ERROR(built.status());
    proto::Run run;
    for (int i = 0; i < options_.processes; ++i) {
      const absl::StatusOr<ProcessResult> result = builder_.Run(*built);
      if (absl::IsFailedPrecondition(result.status())) {
        return Fail(commit, std::string(result.status().message()));
      }
      OPTRAIL_RETURN_IF_ERROR(result.status());
      if (!result->failure.empty()) {
        if (!options_.quiet) std::cerr << result->stderr_tail << "\n";
        return Fail(commit, absl::StrCat("its run ", result->failure));
      }
      const absl::Status added = AddProcess(*result, &run);
      if (!added.ok()) return Fail(commit, std::string(added.message()));
    }
    OPTRAIL_ASSIGN_OR_RETURN(const std::string id, Record(commit, &run));
    AddRow(commit, "measured", id);
    return true;
  }

  absl::Status AddProcess(const ProcessResult& result, proto::Run* run) const {
    ImportOptions import;
    import.files_are_processes = true;
    import.hardware_id = options_.hardware.id();
    OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> runs,
                             ImportContents(result.files, import));
    if (runs[0].results().empty()) {
      return absl::InvalidArgumentError("its run gives no benchmark");
    }
    if (run->results().empty()) {
      *run = std::move(runs[0]);
    } else {
      AppendProcesses(runs[0], run);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Record(const std::string& commit,
                                     proto::Run* run) const {
    const int64_t now_ns = NowUnixNs(options_.common);
    run->set_started_unix_ns(now_ns);
    run->set_run_id(NewRecordId(now_ns));
    run->set_suite(options_.suite);
    run->clear_source_digests();  // measured here, not imported
    *run->mutable_hardware() = options_.hardware;
    for (proto::BenchmarkResult& result : *run->mutable_results()) {
      for (proto::Measurement& each : *result.mutable_measurements()) {
        each.mutable_conditions()->set_host(HostName());
      }
    }
    OPTRAIL_ASSIGN_OR_RETURN(*run->mutable_commit(),
                             CommitNamed(options_.common.workspace, commit));
    if (!options_.branch.empty()) {
      run->mutable_commit()->set_branch(options_.branch);
    }
    OPTRAIL_RETURN_IF_ERROR(ValidateRun(*run));
    OPTRAIL_RETURN_IF_ERROR(history_.AppendRun(*run));
    return run->run_id();
  }

  const WatchCommand& options_;
  CommitBuilder& builder_;
  const History& history_;
  Failures& failures_;
  Table table_{{{"commit", Align::kLeft, "", Clip::kNever},
                {"outcome"},
                {"detail", Align::kLeft, "", Clip::kNever},
                {"subject"}}};
};

}  // namespace

absl::StatusOr<int> RunWatch(const WatchCommand& options, std::ostream& out) {
  OPTRAIL_RETURN_IF_ERROR(CheckFlag(options.processes >= 1, "processes",
                                    options.processes, "at least 1"));
  OPTRAIL_RETURN_IF_ERROR(
      CheckFlag(options.limit >= 0, "limit", options.limit, "at least 0"));
  OPTRAIL_RETURN_IF_ERROR(CheckName("suite", options.suite));
  OPTRAIL_RETURN_IF_ERROR(CheckName("branch", options.branch));
  OPTRAIL_RETURN_IF_ERROR(CheckName("hardware", options.hardware.id()));
  Interruptible interruptible;
  BuildOptions build = options.build;
  build.trees.repository = options.common.workspace;
  build.quiet = options.quiet;
  OPTRAIL_ASSIGN_OR_RETURN(const auto builder,
                           CommitBuilder::Create(build, interruptible));
  OPTRAIL_ASSIGN_OR_RETURN(const History history,
                           History::Open(options.common.history));
  OPTRAIL_RETURN_IF_ERROR(history.store().CheckIsWritable());
  OPTRAIL_ASSIGN_OR_RETURN(
      Failures failures,
      Failures::Read(JoinPath(builder->trees().folder(), "failures.jsonl"),
                     absl::StrCat(build.target, "\n", build.build_command, "\n",
                                  build.run_command)));
  const absl::StatusOr<int> code =
      Watch(options, *builder, history, failures).Run(out);
  if (absl::IsCancelled(code.status())) {
    std::cerr << code.status().message()
              << "; what was measured is recorded, the same command goes on\n";
  }
  return code;
}

}  // namespace optrail::tracker
