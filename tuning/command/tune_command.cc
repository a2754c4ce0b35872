#include "tuning/command/tune_command.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/journal.h"
#include "base/progress.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/trial.pb.h"
#include "tuning/search/stop_rule.h"
#include "tuning/search/strategies.h"
#include "tuning/space/space.h"

namespace optrail::tuning {
namespace {

constexpr char kJournalTitle[] = "optrail tune --command, version 1";
// An improvement below this fraction is noise to the patience.
constexpr double kNoise = 0.002;
// Rows of the result.
constexpr size_t kShown = 10;

std::map<std::string, std::string> KnobTexts(const proto::Config& config) {
  std::map<std::string, std::string> texts;
  for (const proto::KnobValue& value : config.set()) {
    texts[value.knob()] = CanonicalText(value);
  }
  return texts;
}

struct TriedConfig {
  Levels levels;
  CommandTrial trial;
  // Of the first metric, when it was run again as a finalist.
  std::vector<double> readings;
};

class Session {
 public:
  Session(const TuneCommandOptions& options, std::ostream& out,
          std::ostream& log)
      : options_(options), out_(out), log_(log) {}

  absl::StatusOr<int> Run();

 private:
  absl::Status Prepare();
  absl::Status OpenJournal();
  void SayWhereItIs();
  void MakeStopRule();
  absl::Status Search();
  absl::Status RunRound(const std::vector<Levels>& round);
  absl::Status VerifyFinalists();
  int Report();

  void Account(const Levels& levels, const CommandTrial& trial);
  Trial ForStrategy(const Levels& levels, const CommandTrial& trial) const;
  std::string Encode(const Levels& levels, const CommandTrial& trial) const;
  absl::Status Replay(const std::string& record);
  bool WithinLimits(const CommandTrial& trial) const;
  CommandTrial Evaluate(const Levels& levels) const {
    return evaluator_->Evaluate(KnobTexts(space_->ToConfig(levels)));
  }
  const std::vector<Metric>& metrics() const { return evaluator_->metrics(); }
  bool one_metric() const { return metrics().size() == 1; }

  const TuneCommandOptions& options_;
  std::ostream& out_;
  std::ostream& log_;

  std::unique_ptr<BoundSpace> space_;
  std::unique_ptr<CommandEvaluator> evaluator_;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<Journal> journal_;
  StopRule stop_;
  SessionProgress progress_;
  absl::Duration earlier_;  // spent before this sitting
  absl::optional<double> improved_to_;
  std::vector<TriedConfig> tried_;
  std::map<TrialOutcome, std::pair<int, std::string>> failures_;
  std::string stop_reason_;
};

absl::Status Session::Prepare() {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(options_.space_file));
  OPTRAIL_ASSIGN_OR_RETURN(const Space space,
                           Space::Parse(text, options_.space_file));
  proto::Shape shape;
  if (!options_.shape.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(shape, ParseShape(options_.shape));
  }
  OPTRAIL_ASSIGN_OR_RETURN(space_, space.Bind(shape, options_.hardware));
  OPTRAIL_ASSIGN_OR_RETURN(
      CommandTemplate command,
      CommandTemplate::Parse(options_.command, space.knob_names()));
  if (options_.metrics.empty()) {
    return absl::InvalidArgumentError(
        "no metric, expected at least one such as throughput:max");
  }
  std::vector<Metric> metrics;
  for (const std::string& metric_text : options_.metrics) {
    OPTRAIL_ASSIGN_OR_RETURN(Metric metric, ParseMetric(metric_text));
    for (const Metric& other : metrics) {
      if (other.name == metric.name) {
        return absl::InvalidArgumentError(
            absl::StrCat("metric '", metric.name, "' is named twice"));
      }
    }
    metrics.push_back(std::move(metric));
  }
  for (const std::string& pattern : options_.metric_patterns) {
    OPTRAIL_RETURN_IF_ERROR(SetPattern(pattern, metrics));
  }
  if (options_.parallel < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parallel is ", options_.parallel, ", expected at least 1"));
  }
  StrategyOptions strategy_options;
  strategy_options.seed = options_.seed;
  strategy_options.batch = options_.parallel;
  strategy_options.budget = options_.max_trials;
  strategy_options.objectives = static_cast<int>(metrics.size());
  strategy_options.weights = options_.weights;
  strategy_options.top_k = static_cast<int>(space_->top_k());
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (!metrics[i].limit) continue;
    strategy_options.limits.push_back(
        {static_cast<int>(i), metrics[i].CostOf(*metrics[i].limit)});
  }
  evaluator_ = std::make_unique<CommandEvaluator>(
      std::move(command), std::move(metrics), options_.limits);
  OPTRAIL_ASSIGN_OR_RETURN(
      strategy_, MakeStrategy(options_.strategy, *space_, strategy_options));
  return absl::OkStatus();
}

void Session::MakeStopRule() {
  std::vector<StopRule> rules;
  if (options_.max_trials > 0) rules.push_back(MaxTrials(options_.max_trials));
  if (options_.max_time < absl::InfiniteDuration()) {
    rules.push_back(MaxTime(options_.max_time));
  }
  if (options_.patience_trials > 0) {
    rules.push_back(Patience(options_.patience_trials));
  }
  if (options_.min_expected_improvement > 0) {
    rules.push_back(
        ExpectedImprovementBelow(options_.min_expected_improvement));
  }
  if (options_.target > 0) {
    rules.push_back(TargetReached(metrics()[0].CostOf(options_.target)));
  }
  stop_ = AnyOf(std::move(rules));
}

absl::Status Session::OpenJournal() {
  if (options_.journal_directory.empty()) return absl::OkStatus();
  // What decides which trials come, and what they mean. Stop rules do not: a
  // session that has ended can be given more.
  const std::string key = absl::StrJoin(
      {std::string(kJournalTitle), space_->space().hash(), options_.shape,
       CanonicalText(space_->default_config()), options_.command,
       absl::StrJoin(options_.metrics, ","),
       absl::StrJoin(options_.metric_patterns, ","),
       absl::StrJoin(options_.weights, ","), std::string(strategy_->name()),
       absl::StrCat(options_.seed, "/", options_.parallel),
       absl::FormatDuration(options_.limits.timeout)},
      "\n");
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(options_.journal_directory));
  const std::string path =
      JoinPath(options_.journal_directory,
               absl::StrCat("command-", Fingerprint(key), ".journal"));
  OPTRAIL_ASSIGN_OR_RETURN(journal_, Journal::Open(path));
  if (journal_->records().empty()) return journal_->AppendAndSync(key);
  if (journal_->records()[0] != key) {
    return absl::DataLossError(
        absl::StrCat(path, ": the journal of another session"));
  }
  for (size_t i = 1; i < journal_->records().size(); ++i) {
    OPTRAIL_RETURN_IF_ERROR(Replay(journal_->records()[i]));
  }
  if (!tried_.empty()) {
    log_ << "resumed after " << tried_.size() << " trials: " << path << "\n";
  }
  return absl::OkStatus();
}

std::string Session::Encode(const Levels& levels,
                            const CommandTrial& trial) const {
  proto::Trial record;
  *record.mutable_config() = space_->ToConfig(levels);
  // The enums mirror each other.
  record.set_outcome(static_cast<proto::Outcome>(trial.outcome));
  record.set_detail(trial.detail);
  record.set_elapsed_ns(absl::ToInt64Nanoseconds(trial.elapsed));
  for (size_t i = 0; i < trial.values.size(); ++i) {
    proto::MetricSamples* samples = record.add_objectives();
    samples->set_metric(metrics()[i].name);
    samples->set_direction(metrics()[i].maximise ? proto::HIGHER_IS_BETTER
                                                 : proto::LOWER_IS_BETTER);
    samples->add_values(trial.values[i]);
  }
  return record.SerializeAsString();
}

absl::Status Session::Replay(const std::string& record) {
  proto::Trial stored;
  if (!stored.ParseFromString(record)) {
    return absl::DataLossError(
        absl::StrCat(journal_->path(), ": a record is no trial"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const Levels levels,
                           space_->ToLevels(stored.config()));
  CommandTrial trial;
  trial.outcome = static_cast<TrialOutcome>(stored.outcome());
  trial.detail = stored.detail();
  trial.elapsed = absl::Nanoseconds(stored.elapsed_ns());
  for (const proto::MetricSamples& samples : stored.objectives()) {
    if (samples.values_size() > 0) trial.values.push_back(samples.values(0));
  }
  earlier_ += trial.elapsed / options_.parallel;
  strategy_->Tell({ForStrategy(levels, trial)});
  Account(levels, trial);
  return absl::OkStatus();
}

Trial Session::ForStrategy(const Levels& levels,
                           const CommandTrial& trial) const {
  Trial told;
  told.levels = levels;
  told.outcome = trial.outcome;
  for (size_t i = 0; i < trial.values.size(); ++i) {
    told.objectives.push_back(metrics()[i].CostOf(trial.values[i]));
  }
  return told;
}

bool Session::WithinLimits(const CommandTrial& trial) const {
  for (size_t i = 0; i < metrics().size(); ++i) {
    const Metric& metric = metrics()[i];
    if (metric.limit &&
        metric.CostOf(trial.values[i]) > metric.CostOf(*metric.limit)) {
      return false;
    }
  }
  return true;
}

void Session::Account(const Levels& levels, const CommandTrial& trial) {
  ++progress_.trials;
  ++progress_.trials_since_improvement;
  if (trial.outcome != TrialOutcome::kOk) {
    auto& [count, first] = failures_[trial.outcome];
    if (count++ == 0) {
      first = absl::StrCat(CanonicalText(space_->ToConfig(levels)), ": ",
                           trial.detail);
    }
  } else if (WithinLimits(trial)) {
    const double cost = metrics()[0].CostOf(trial.values[0]);
    progress_.best_cost = std::min(progress_.best_cost.value_or(cost), cost);
    if (!improved_to_ || cost < *improved_to_ * (1 - kNoise)) {
      improved_to_ = cost;
      progress_.trials_since_improvement = 0;
    }
  }
  progress_.expected_improvement = strategy_->ExpectedImprovement();
  const bool quiet =
      progress_.expected_improvement &&
      *progress_.expected_improvement < options_.min_expected_improvement;
  progress_.quiet_trials = quiet ? progress_.quiet_trials + 1 : 0;
  tried_.push_back({levels, trial, {}});
}

absl::Status Session::RunRound(const std::vector<Levels>& round) {
  std::vector<CommandTrial> trials(round.size());
  std::vector<std::thread> threads;
  for (size_t i = 1; i < round.size(); ++i) {
    threads.emplace_back([&, i] { trials[i] = Evaluate(round[i]); });
  }
  trials[0] = Evaluate(round[0]);
  for (std::thread& thread : threads) thread.join();
  if (journal_ != nullptr) {
    for (size_t i = 0; i < round.size(); ++i) {
      OPTRAIL_RETURN_IF_ERROR(journal_->Append(Encode(round[i], trials[i])));
    }
    OPTRAIL_RETURN_IF_ERROR(journal_->Sync());
  }
  for (size_t i = 0; i < round.size(); ++i) {
    strategy_->Tell({ForStrategy(round[i], trials[i])});
    Account(round[i], trials[i]);
  }
  return absl::OkStatus();
}

absl::Status Session::Search() {
  ProgressOptions progress_options;
  progress_options.quiet = options_.quiet;
  Progress bar("tuning", options_.max_trials, progress_options);
  const int64_t start_ns = Clock::Real()->NowNs();
  while (true) {
    progress_.elapsed =
        earlier_ + absl::Nanoseconds(Clock::Real()->NowNs() - start_ns);
    if (const absl::optional<StopReason> reason = stop_(progress_)) {
      stop_reason_ = reason->text;
      return absl::OkStatus();
    }
    int count = options_.parallel;
    if (options_.max_trials > 0) {
      count = std::min(count, options_.max_trials - progress_.trials);
    }
    const std::vector<Levels> round = strategy_->Ask(count);
    if (round.empty()) {
      stop_reason_ = strategy_->StopReason();
      return absl::OkStatus();
    }
    OPTRAIL_RETURN_IF_ERROR(RunRound(round));
    std::string best = "nothing worked yet";
    if (progress_.best_cost) {
      best = absl::StrCat("best ", metrics()[0].name, " ",
                          metrics()[0].CostOf(*progress_.best_cost));
    }
    bar.Update(progress_.trials, best);
  }
}

absl::Status Session::VerifyFinalists() {
  if (!one_metric()) return absl::OkStatus();
  std::vector<TriedConfig*> finalists;
  for (const Levels& levels : strategy_->Finalists(options_.finalists)) {
    for (TriedConfig& config : tried_) {
      if (config.levels == levels) finalists.push_back(&config);
    }
  }
  if (finalists.size() < 2) return absl::OkStatus();
  for (int run = 0; run < options_.verify_runs; ++run) {
    for (TriedConfig* finalist : finalists) {
      if (finalist->trial.outcome != TrialOutcome::kOk) continue;
      CommandTrial again = Evaluate(finalist->levels);
      if (again.outcome == TrialOutcome::kOk) {
        finalist->readings.push_back(again.values[0]);
        continue;
      }
      // What fails once never wins.
      finalist->trial = std::move(again);
      log_ << CanonicalText(space_->ToConfig(finalist->levels))
           << " failed when it was run again: " << finalist->trial.detail
           << "\n";
    }
  }
  return absl::OkStatus();
}

int Session::Report() {
  for (const auto& [outcome, failure] : failures_) {
    log_ << failure.first << " x " << TrialOutcomeName(outcome)
         << ", first: " << failure.second << "\n";
  }
  log_ << "stopped after " << progress_.trials << " trials: " << stop_reason_
       << "\n";
  struct Row {
    double cost = 0;
    std::vector<double> values;
    const TriedConfig* config = nullptr;
  };
  std::vector<Row> verified, rows;
  for (const TriedConfig& config : tried_) {
    if (config.trial.outcome != TrialOutcome::kOk) continue;
    if (!WithinLimits(config.trial)) continue;
    Row row;
    row.config = &config;
    row.values = config.trial.values;
    // The reading that made it a finalist is a lucky one and does not count.
    const bool again = !config.readings.empty();
    if (again) row.values[0] = Median(config.readings);
    row.cost = metrics()[0].CostOf(row.values[0]);
    (again ? verified : rows).push_back(std::move(row));
  }
  if (!one_metric() && options_.weights.empty()) {
    std::vector<Levels> front;
    for (const Trial& trial : strategy_->ParetoFront()) {
      front.push_back(trial.levels);
    }
    rows.erase(std::remove_if(rows.begin(), rows.end(),
                              [&](const Row& row) {
                                return std::find(front.begin(), front.end(),
                                                 row.config->levels) ==
                                       front.end();
                              }),
               rows.end());
  } else if (!one_metric()) {
    // The strategy's order is that of the weighted product.
    const std::vector<Levels> order = strategy_->Finalists(progress_.trials);
    for (Row& row : rows) {
      row.cost = static_cast<double>(
          std::find(order.begin(), order.end(), row.config->levels) -
          order.begin());
    }
  }
  const auto cheaper = [](const Row& a, const Row& b) {
    return a.cost < b.cost;
  };
  std::stable_sort(verified.begin(), verified.end(), cheaper);
  std::stable_sort(rows.begin(), rows.end(), cheaper);
  // One that was run again is known; what others read once is hearsay.
  rows.insert(rows.begin(), verified.begin(), verified.end());
  if (rows.empty()) {
    log_ << "no config worked\n";
    return 1;
  }
  std::vector<Column> columns;
  for (const Metric& metric : metrics()) {
    columns.emplace_back(metric.name, Align::kRight);
  }
  columns.emplace_back("runs", Align::kRight);
  columns.emplace_back("config");
  Table table(std::move(columns));
  const bool front = !one_metric() && options_.weights.empty();
  const size_t shown = front ? rows.size() : std::min(rows.size(), kShown);
  for (size_t i = 0; i < shown; ++i) {
    std::vector<Cell> cells;
    for (const double value : rows[i].values) {
      cells.push_back(Cell::Number(value, absl::StrFormat("%.6g", value)));
    }
    cells.push_back(Cell::Integer(1 + rows[i].config->readings.size()));
    cells.push_back(CanonicalText(space_->ToConfig(rows[i].config->levels)));
    table.AddRow(std::move(cells));
  }
  out_ << table.Format(options_.format, TerminalWidth());
  if (options_.format == OutputFormat::kTable && !front) {
    out_ << "\nbest: "
         << evaluator_->command().Fill(
                KnobTexts(space_->ToConfig(rows[0].config->levels)))
         << "\n";
  }
  return 0;
}

void Session::SayWhereItIs() {
  if (journal_ == nullptr) return;
  log_ << "journal: " << journal_->path()
       << " (the same command goes on from there; sessions of --command are "
          "not in the history)\n";
}

absl::StatusOr<int> Session::Run() {
  OPTRAIL_RETURN_IF_ERROR(Prepare());
  MakeStopRule();
  OPTRAIL_RETURN_IF_ERROR(OpenJournal());
  OPTRAIL_RETURN_IF_ERROR(Search());
  OPTRAIL_RETURN_IF_ERROR(VerifyFinalists());
  const int code = Report();
  SayWhereItIs();
  return code;
}

}  // namespace

absl::StatusOr<int> RunTuneCommand(const TuneCommandOptions& options,
                                   std::ostream& out, std::ostream& log) {
  return Session(options, out, log).Run();
}

}  // namespace optrail::tuning
