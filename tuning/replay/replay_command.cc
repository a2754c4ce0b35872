#include "tuning/replay/replay_command.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file/compression.h"
#include "base/process/parallel_for.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tuning/replay/recording.h"
#include "tuning/replay/replay_problem.h"
#include "tuning/replay/score.h"
#include "tuning/search/strategies.h"

namespace optrail::tuning {
namespace {

constexpr char kBaseline[] = "random_exact";
constexpr uint64_t kShuffleSeed = 0x5b0ff1e;
constexpr uint64_t kSourceSeed = 0x50a4ce;

absl::Status CheckCommand(const ReplayCommand& command) {
  if (command.budgets.empty() ||
      !std::is_sorted(command.budgets.begin(), command.budgets.end()) ||
      command.budgets.front() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("budgets: ", absl::StrJoin(command.budgets, ","),
                     ", expected positive numbers in increasing order"));
  }
  if (command.seeds < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("seeds: ", command.seeds, ", expected at least 1"));
  }
  if (command.batch < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch: ", command.batch, ", expected at least 1"));
  }
  if (command.transfer_trials < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "transfer_trials: ", command.transfer_trials, ", expected at least 0"));
  }
  if (command.top_k > 0 && command.prior.empty()) {
    return absl::InvalidArgumentError(
        "top_k: expected a prior (a recording that ranks the configs)");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ExpandStrategies(
    const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  const std::vector<std::string> known = StrategyNames();
  for (const std::string& name : wanted) {
    if (name == "all") {
      for (const std::string& strategy : known) {
        if (strategy != "exhaustive") names.push_back(strategy);
      }
    } else if (name == "default" || name == kBaseline ||
               std::find(known.begin(), known.end(), name) != known.end()) {
      names.push_back(name);
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "strategies: unknown '", name, "', expected all, default or some of ",
          absl::StrJoin(known, ", ")));
    }
  }
  if (names.empty()) names.push_back("default");
  return names;
}

// Fisher-Yates over the answers; the configs stay in place.
void ShuffleAnswers(uint64_t seed, TransferSource& source) {
  Rng rng(seed);
  for (size_t i = source.trials.size(); i > 1; --i) {
    Trial& a = source.trials[i - 1];
    Trial& b = source.trials[rng.UniformInt(i)];
    std::swap(a.outcome, b.outcome);
    std::swap(a.objectives, b.objectives);
  }
}

struct Task {
  int problem = 0;
  ReplayRun run;
  absl::StatusOr<ReplayResult> result = absl::UnknownError("not run");
};

void RunTasks(const std::vector<std::unique_ptr<ReplayProblem>>& problems,
              int jobs, std::vector<Task>& tasks) {
  ParallelFor(static_cast<int64_t>(tasks.size()), jobs, [&](int64_t i) {
    tasks[i].result = problems[tasks[i].problem]->Run(tasks[i].run);
  });
}

// The rows of one space and strategy from its runs.
std::vector<ReplayRow> Summarise(const ReplayProblem& problem,
                                 const std::string& strategy,
                                 const ReplayCommand& command,
                                 const std::vector<ReplayResult>& results) {
  std::vector<ReplayRow> rows;
  const double n = static_cast<double>(results.size());
  for (size_t b = 0; b < command.budgets.size(); ++b) {
    ReplayRow row;
    row.space = problem.recording().name;
    row.strategy = strategy;
    row.budget = command.budgets[b];
    row.seeds = static_cast<int>(results.size());
    for (const ReplayResult& result : results) {
      row.mean_fraction += result.fractions[b] / n;
      row.ev5 += result.ev5 / n;
      row.cpu_ms_per_run += result.cpu_ms / n;
      row.winner_loss += result.winner_loss / n;
    }
    double squares = 0;
    for (const ReplayResult& result : results) {
      squares += std::pow(result.fractions[b] - row.mean_fraction, 2);
    }
    if (n > 1) row.stderr_fraction = std::sqrt(squares / (n - 1) / n);
    if (command.top_k > 0) {
      row.best_of_top_k = problem.BestFractionOfTopK(command.top_k);
    }
    rows.push_back(row);
  }
  return rows;
}

std::vector<ReplayRow> Baseline(const ReplayProblem& problem,
                                const ReplayCommand& command) {
  std::vector<ReplayRow> rows;
  for (const int budget : command.budgets) {
    ReplayRow row;
    row.space = problem.recording().name;
    row.strategy = kBaseline;
    row.budget = budget;
    row.mean_fraction = RandomExpectedFraction(problem.recording(), budget);
    row.ev5 = RandomExpectedEv5(problem.recording(), command.budgets.back());
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandSpaces(
    const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    std::filesystem::directory_iterator it(path, error), end;
    for (; !error && it != end; it.increment(error)) {
      const std::string name = it->path().string();
      if (absl::EndsWith(WithoutCompressionSuffix(name), ".json")) {
        found.push_back(name);
      }
    }
    if (error) {
      return absl::NotFoundError(absl::StrCat(path, ": ", error.message()));
    }
    if (found.empty()) {
      return absl::NotFoundError(absl::StrCat(
          path, ": no *.json, *.json.gz or *.json.xz files in this folder"));
    }
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

absl::StatusOr<std::vector<std::string>> SpacesOf(
    const ReplayCommand& command) {
  if (command.spaces.empty()) {
    return absl::InvalidArgumentError(
        "no FILE is given; expected at least one recorded space");
  }
  return ExpandSpaces(command.spaces);
}

namespace {

using Problems = std::vector<std::unique_ptr<ReplayProblem>>;

absl::StatusOr<Problems> ReadProblems(const ReplayCommand& command) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           SpacesOf(command));
  Problems problems;
  for (const std::string& file : files) {
    OPTRAIL_ASSIGN_OR_RETURN(Recording recording, ReadRecording(file));
    problems.push_back(std::make_unique<ReplayProblem>(std::move(recording)));
  }
  if (!command.prior.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const Recording prior,
                             ReadRecording(command.prior));
    for (auto& problem : problems) {
      OPTRAIL_RETURN_IF_ERROR(problem->MakeSource(prior).status());
      problem->SetPriorFrom(prior);
    }
  }
  return problems;
}

absl::StatusOr<std::vector<Recording>> ReadSources(
    const ReplayCommand& command) {
  std::vector<Recording> sources;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           ExpandSpaces(command.transfer));
  for (const std::string& file : files) {
    OPTRAIL_ASSIGN_OR_RETURN(Recording recording, ReadRecording(file));
    if (command.transfer_trials > 0) {
      OPTRAIL_ASSIGN_OR_RETURN(recording,
                               AfterSearch(recording, command.transfer_trials,
                                           kSourceSeed + sources.size()));
    }
    sources.push_back(std::move(recording));
  }
  return sources;
}

// The recordings of the same kernel, as sources that a problem learns from.
std::vector<TransferSource> SourcesFor(const ReplayProblem& problem,
                                       const std::vector<Recording>& others,
                                       bool shuffle) {
  std::vector<TransferSource> sources;
  for (const Recording& other : others) {
    if (other.name == problem.recording().name) continue;
    absl::StatusOr<TransferSource> source = problem.MakeSource(other);
    if (!source.ok()) continue;  // another kernel
    if (shuffle) ShuffleAnswers(kShuffleSeed + sources.size(), *source);
    sources.push_back(*std::move(source));
  }
  return sources;
}

}  // namespace

absl::StatusOr<std::vector<ReplayRow>> RunReplay(const ReplayCommand& command) {
  OPTRAIL_RETURN_IF_ERROR(CheckCommand(command));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> strategies,
                           ExpandStrategies(command.strategies));
  OPTRAIL_ASSIGN_OR_RETURN(const Problems problems, ReadProblems(command));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Recording> sources,
                           ReadSources(command));
  std::vector<Task> tasks;
  for (size_t p = 0; p < problems.size(); ++p) {
    const std::vector<TransferSource> known =
        SourcesFor(*problems[p], sources, command.shuffle_transfer);
    for (const std::string& strategy : strategies) {
      if (strategy == kBaseline) continue;
      for (int seed = 0; seed < command.seeds; ++seed) {
        Task& task = tasks.emplace_back();
        task.problem = static_cast<int>(p);
        task.run.strategy = strategy;
        task.run.budgets = command.budgets;
        task.run.seed = command.first_seed + seed;
        task.run.batch = command.batch;
        task.run.noise = command.noise;
        task.run.compile_time_objective = command.compile_time_objective;
        task.run.top_k = command.top_k;
        task.run.sources = known;
      }
    }
  }
  RunTasks(problems, command.jobs, tasks);

  std::vector<ReplayRow> rows;
  const auto append = [&rows](std::vector<ReplayRow> more) {
    rows.insert(rows.end(), more.begin(), more.end());
  };
  size_t next = 0;
  for (const auto& problem : problems) {
    if (!command.compile_time_objective && !command.noise) {
      append(Baseline(*problem, command));
    }
    for (const std::string& strategy : strategies) {
      if (strategy == kBaseline) continue;
      std::vector<ReplayResult> results;
      for (int seed = 0; seed < command.seeds; ++seed) {
        OPTRAIL_ASSIGN_OR_RETURN(ReplayResult result,
                                 std::move(tasks[next++].result));
        results.push_back(std::move(result));
      }
      append(Summarise(*problem, strategy, command, results));
    }
  }
  return rows;
}

namespace {

std::string FormatCsv(const ReplayCommand& command,
                      const std::vector<ReplayRow>& rows) {
  std::string out =
      "space,strategy,budget,mean_fraction,stderr,ev5,seeds,cpu_ms_per_run";
  if (command.noise) out += ",winner_loss";
  if (command.top_k > 0) out += ",best_of_top_k";
  out += "\n";
  for (const ReplayRow& row : rows) {
    absl::StrAppendFormat(&out, "%s,%s,%d,%.5f,%.5f,%.1f,%d,%.1f", row.space,
                          row.strategy, row.budget, row.mean_fraction,
                          row.stderr_fraction, row.ev5, row.seeds,
                          row.cpu_ms_per_run);
    if (command.noise) absl::StrAppendFormat(&out, ",%.5f", row.winner_loss);
    if (command.top_k > 0) {
      absl::StrAppendFormat(&out, ",%.5f", row.best_of_top_k);
    }
    out += "\n";
  }
  return out;
}

std::string FormatJson(const std::vector<ReplayRow>& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ReplayRow& row : rows) {
    json.push_back({{"space", row.space},
                    {"strategy", row.strategy},
                    {"budget", row.budget},
                    {"mean_fraction", row.mean_fraction},
                    {"stderr", row.stderr_fraction},
                    {"ev5", row.ev5},
                    {"seeds", row.seeds},
                    {"cpu_ms_per_run", row.cpu_ms_per_run},
                    {"winner_loss", row.winner_loss},
                    {"best_of_top_k", row.best_of_top_k}});
  }
  return json.dump(1) + "\n";
}

// A line of the table: the fractions of one space and strategy.
struct Line {
  std::vector<double> fractions;
  double ev5 = 0;
  double cpu_ms = 0;
  double winner_loss = 0;
};

Line MeanOf(const std::vector<Line>& lines) {
  const auto n = static_cast<double>(lines.size());
  Line mean;
  mean.fractions.resize(lines[0].fractions.size());
  for (const Line& line : lines) {
    for (size_t b = 0; b < line.fractions.size(); ++b) {
      mean.fractions[b] += line.fractions[b] / n;
    }
    mean.ev5 += line.ev5 / n;
    mean.cpu_ms += line.cpu_ms / n;
    mean.winner_loss += line.winner_loss / n;
  }
  return mean;
}

std::string FormatTable(const ReplayCommand& command,
                        const std::vector<ReplayRow>& rows, bool markdown) {
  std::vector<std::string> strategies;
  std::map<std::string, std::vector<Line>> by_strategy;
  std::string out;
  const char* bar = markdown ? "| " : "";
  const char* gap = markdown ? " | " : "  ";
  const char* end = markdown ? " |\n" : "\n";
  const auto add = [&](const std::string& space, const std::string& strategy,
                       const Line& line) {
    absl::StrAppendFormat(&out, "%s%-26s%s%-22s", bar, space, gap, strategy);
    for (const double fraction : line.fractions) {
      absl::StrAppendFormat(&out, "%s%6.4f", gap, fraction);
    }
    absl::StrAppendFormat(&out, "%s%6.1f%s%8.1f", gap, line.ev5, gap,
                          line.cpu_ms);
    if (command.noise)
      absl::StrAppendFormat(&out, "%s%.5f", gap, line.winner_loss);
    out += end;
  };
  absl::StrAppendFormat(&out, "%s%-26s%s%-22s", bar, "space", gap, "strategy");
  for (const int budget : command.budgets) {
    absl::StrAppendFormat(&out, "%s%6d", gap, budget);
  }
  absl::StrAppendFormat(&out, "%s%6s%s%8s", gap, "ev5", gap, "cpu ms");
  if (command.noise) absl::StrAppend(&out, gap, "winner loss");
  out += end;
  if (markdown) {
    const size_t columns = 4 + command.budgets.size() + (command.noise ? 1 : 0);
    for (size_t i = 0; i < columns; ++i) out += "|---";
    out += "|\n";
  }
  const size_t budgets = command.budgets.size();
  for (size_t i = 0; i + budgets <= rows.size(); i += budgets) {
    Line line;
    for (size_t b = 0; b < budgets; ++b) {
      line.fractions.push_back(rows[i + b].mean_fraction);
    }
    line.ev5 = rows[i].ev5;
    line.cpu_ms = rows[i].cpu_ms_per_run;
    line.winner_loss = rows[i].winner_loss;
    add(rows[i].space, rows[i].strategy, line);
    if (by_strategy.count(rows[i].strategy) == 0) {
      strategies.push_back(rows[i].strategy);
    }
    by_strategy[rows[i].strategy].push_back(line);
  }
  for (const std::string& strategy : strategies) {
    const std::vector<Line>& lines = by_strategy[strategy];
    add(absl::StrCat("mean of ", lines.size()), strategy, MeanOf(lines));
  }
  return out;
}

}  // namespace

absl::StatusOr<std::string> FormatReplay(const ReplayCommand& command,
                                         const std::vector<ReplayRow>& rows) {
  if (command.format == "csv") return FormatCsv(command, rows);
  if (command.format == "json") return FormatJson(rows);
  if (command.format == "table") return FormatTable(command, rows, false);
  if (command.format == "markdown") return FormatTable(command, rows, true);
  return absl::InvalidArgumentError(absl::StrCat(
      "format: '", command.format, "', expected table, csv, json or markdown"));
}

}  // namespace optrail::tuning
