// How good is the search over schedules? On one operator and shape, each
// strategy gets the same number of trials; every program is compiled, checked
// against the reference and timed (processor time, the fastest of some calls,
// so that it may share a machine; figures of a table that compares backends
// come from `optrail bench`). Programs that two strategies try are timed once.
//
//   search_evaluation --op=matmul --shape=m=512,n=512,k=512/f32 --trials=200
//
// prints, for each strategy and seed, the fastest after 25, 50, 100, ... trials
// relative to the fastest that anybody found; the fastest of each once more, in
// turns, since the best of hundreds is also the luckiest; how well the cost
// model ranks
// programs that it has not seen; and with --from_shape what the winners there
// save here.

#include <time.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/stats/rank_correlation.h"
#include "base/status_macros.h"
#include "ops/core/backend.h"
#include "ops/core/device_type.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/core/runnable.h"
#include "tuning/proto/canonical.h"
#include "tuning/schedule/evolution.h"
#include "tuning/schedule/rule.h"
#include "tuning/schedule/trace_source.h"

ABSL_FLAG(std::string, op, "matmul", "operator");
ABSL_FLAG(std::string, shape, "m=512,n=512,k=512/f32", "shape");
ABSL_FLAG(std::string, from_shape, "",
          "Search this shape first and start from its winners, too.");
ABSL_FLAG(int, trials, 200, "of each search");
ABSL_FLAG(int, seeds, 2, "searches of each strategy");
ABSL_FLAG(std::vector<std::string>, strategies,
          std::vector<std::string>({"trees", "none", "random", "template"}),
          "random, template (one structure, the rules' own, and random sizes "
          "of its tiles), or names of cost models "
          "(tuning/schedule/cost_model.h)");
ABSL_FLAG(int, held_out, 40, "programs that judge the cost model; 0: none");

namespace optrail::ops {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double ProcessorSeconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Programs of one shape and what they cost.
class Bench {
 public:
  static absl::StatusOr<std::unique_ptr<Bench>> Open(const std::string& op,
                                                     const std::string& shape) {
    auto bench = std::unique_ptr<Bench>(new Bench());
    bench->entry_ = Registry::Get().Find(op);
    if (bench->entry_ == nullptr) return Registry::Get().UnknownOperator(op);
    OPTRAIL_ASSIGN_OR_RETURN(bench->shape_, tuning::ParseShape(shape));
    OPTRAIL_ASSIGN_OR_RETURN(bench->backend_,
                             bench->entry_->FindBackend(proto::CPU, "halide"));
    OPTRAIL_ASSIGN_OR_RETURN(const auto type, FindDeviceType(proto::CPU));
    OPTRAIL_ASSIGN_OR_RETURN(bench->device_, type->Make(DeviceOptions()));
    bench->target_.kind = proto::CPU;
    bench->target_.isa = "native";
    bench->target_.hardware = bench->device_->hardware();
    OPTRAIL_RETURN_IF_ERROR(bench->backend_->Id(bench->target_).status());
    OPTRAIL_ASSIGN_OR_RETURN(const auto configs,
                             bench->backend_->Configs(bench->shape_, 1));
    bench->algorithm_ =
        dynamic_cast<const tuning::TraceSource&>(*configs).algorithm();
    OPTRAIL_ASSIGN_OR_RETURN(
        bench->operands_,
        CheckedOperands::Create(*bench->entry_->op, bench->shape_,
                                *bench->device_));
    OPTRAIL_RETURN_IF_ERROR(bench->operands_->Fill(1));
    return bench;
  }

  const tuning::Algorithm& algorithm() const { return algorithm_; }

  // Seconds; nullopt if it was refused or is wrong.
  absl::optional<double> CostOf(const tuning::Candidate& candidate) {
    const auto found = costs_.find(candidate.steps);
    if (found != costs_.end()) return found->second;
    const absl::StatusOr<double> cost =
        Measure(tuning::ConfigOf(candidate.trace));
    if (!cost.ok()) ++failed_;
    return costs_[candidate.steps] =
               cost.ok() ? absl::make_optional(*cost) : absl::nullopt;
  }

  // Several programs again, in turns: medians of what they take.
  absl::StatusOr<std::vector<double>> Again(
      const std::vector<tuning::Trace>& traces) {
    constexpr int kTurns = 15;
    std::vector<std::unique_ptr<Runnable>> runnables;
    for (const tuning::Trace& trace : traces) {
      OPTRAIL_ASSIGN_OR_RETURN(auto runnable, Load(tuning::ConfigOf(trace)));
      runnables.push_back(std::move(runnable));
    }
    std::vector<std::vector<double>> seconds(traces.size());
    for (int turn = 0; turn < kTurns; ++turn) {
      for (size_t i = 0; i < traces.size(); ++i) {
        OPTRAIL_ASSIGN_OR_RETURN(const double taken, SecondsOf(*runnables[i]));
        seconds[i].push_back(taken);
      }
    }
    std::vector<double> medians;
    for (std::vector<double>& of_program : seconds) {
      std::nth_element(of_program.begin(), of_program.begin() + kTurns / 2,
                       of_program.end());
      medians.push_back(of_program[kTurns / 2]);
    }
    return medians;
  }

  int failed() const { return failed_; }

 private:
  Bench() = default;

  absl::StatusOr<std::unique_ptr<Runnable>> Load(
      const proto::Config& config) const {
    OPTRAIL_ASSIGN_OR_RETURN(const Recipe recipe,
                             backend_->Describe({shape_, config, target_}));
    OPTRAIL_ASSIGN_OR_RETURN(const Artifact artifact,
                             backend_->Compile(recipe));
    return Runnable::Load(*backend_, artifact, shape_, config, *device_);
  }

  absl::StatusOr<double> Measure(const proto::Config& config) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Runnable> runnable,
                             Load(config));
    OPTRAIL_RETURN_IF_ERROR(operands_->Arm());
    OPTRAIL_RETURN_IF_ERROR(runnable->Run(operands_->addresses()));
    OPTRAIL_RETURN_IF_ERROR(operands_->Verify().status());
    return SecondsOf(*runnable);
  }

  absl::StatusOr<double> SecondsOf(Runnable& runnable) {
    constexpr double kSeconds = .04;
    OPTRAIL_ASSIGN_OR_RETURN(const Call call,
                             runnable.Prepare(operands_->addresses()));
    double least = kNever, batch_seconds = 0, all = 0;
    int batch = 1;
    while (all < kSeconds) {
      const double begin = ProcessorSeconds();
      for (int i = 0; i < batch; ++i) {
        OPTRAIL_RETURN_IF_ERROR(runnable.invocation().Run(call));
      }
      batch_seconds = ProcessorSeconds() - begin;
      all += batch_seconds;
      if (batch_seconds < 1e-3) {
        batch *= 2;
      } else {
        least = std::min(least, batch_seconds / batch);
      }
    }
    return least;
  }

  const OperatorEntry* entry_ = nullptr;
  const Backend* backend_ = nullptr;
  proto::Shape shape_;
  Target target_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<CheckedOperands> operands_;
  tuning::Algorithm algorithm_;
  std::map<std::string, absl::optional<double>> costs_;
  int failed_ = 0;
};

struct Search {
  std::string name;
  std::vector<double> best_after;  // each trial
  // The fastest first.
  std::vector<std::pair<double, tuning::Trace>> sorted;
};

// The space of a hand-written template with knobs: the rules' own program with
// tiles, blocks and turns of other sizes.
class Template {
 public:
  Template(const tuning::Algorithm& algorithm, uint64_t seed)
      : algorithm_(algorithm), rng_(seed) {
    tuning::Decisions usual = tuning::Decisions::Default();
    (void)tuning::Derive(algorithm_, tuning::Machine(), usual);
    for (const auto& [name, value] : usual.trace()) {
      const bool is_size =
          absl::StrContains(name, "tile") || absl::StrContains(name, "block");
      if (!is_size) structure_.emplace(name, value);
    }
  }

  absl::optional<tuning::Candidate> Next() {
    constexpr int kTries = 200;
    for (int i = 0; i < kTries; ++i) {
      tuning::Decisions decisions = tuning::Decisions::Vary(structure_, rng_);
      const auto program =
          tuning::Derive(algorithm_, tuning::Machine(), decisions);
      if (!program.ok() || !seen_.insert(program->StepsText()).second) continue;
      tuning::Candidate candidate;
      candidate.trace = decisions.trace();
      candidate.steps = program->StepsText();
      return candidate;
    }
    return absl::nullopt;
  }

 private:
  const tuning::Algorithm& algorithm_;
  Rng rng_;
  tuning::Trace structure_;
  std::set<std::string> seen_;
};

Search Run(Bench& bench, const std::string& model, uint64_t seed, int trials,
           const std::vector<tuning::Trace>& seeds) {
  tuning::EvolutionOptions options;
  const bool is_template = model == "template";
  options.model = model == "random" || is_template ? "" : model;
  options.seed = seed;
  options.seeds = seeds;
  tuning::Evolution evolution(bench.algorithm(), tuning::Machine(), options);
  Template sizes(bench.algorithm(), seed);
  Search search;
  search.name = absl::StrCat(model, seeds.empty() ? "" : "+seeds", " #", seed);
  double best = kNever;
  for (int i = 0; i < trials; ++i) {
    const auto next = is_template ? sizes.Next() : evolution.Next();
    if (!next.has_value()) break;
    const absl::optional<double> cost = bench.CostOf(*next);
    if (!is_template) evolution.Tell(next->trace, cost);
    if (cost.has_value()) {
      best = std::min(best, *cost);
      search.sorted.emplace_back(*cost, next->trace);
    }
    search.best_after.push_back(best);
    if (i % 25 == 24) std::cerr << search.name << " " << i + 1 << "\n";
  }
  std::stable_sort(
      search.sorted.begin(), search.sorted.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  return search;
}

void Print(const std::vector<Search>& searches,
           const std::vector<double>& again, int trials) {
  double best = kNever;
  for (const Search& search : searches) {
    if (!search.best_after.empty()) {
      best = std::min(best, search.best_after.back());
    }
  }
  std::cout << absl::StrFormat(
      "best: %.1f us; of its speed after trials\n%-16s", best * 1e6,
      "strategy");
  std::vector<int> columns;
  for (int n = 25; n < trials; n *= 2) columns.push_back(n);
  columns.push_back(trials);
  for (const int n : columns) std::cout << absl::StrFormat("%8d", n);
  std::cout << "   to 95%   again, us\n";
  for (size_t s = 0; s < searches.size(); ++s) {
    const Search& search = searches[s];
    std::cout << absl::StrFormat("%-16s", search.name);
    const auto& after = search.best_after;
    for (const int n : columns) {
      const size_t at = std::min<size_t>(n, after.size());
      std::cout << absl::StrFormat("%7.1f%%",
                                   at == 0 ? 0 : 100 * best / after[at - 1]);
    }
    const auto reached =
        std::find_if(after.begin(), after.end(),
                     [&](double cost) { return best >= .95 * cost; });
    std::cout << (reached == after.end()
                      ? "   never"
                      : absl::StrFormat("%8d", reached - after.begin() + 1))
              << absl::StrFormat("%12.1f\n", again[s] * 1e6);
  }
}

// Programs drawn at random: the model learns from some and ranks others.
void JudgeModel(Bench& bench, const std::string& model, int held_out) {
  tuning::EvolutionOptions draw;
  draw.model = "";
  draw.seed = 991;
  tuning::Evolution drawer(bench.algorithm(), tuning::Machine(), draw);
  std::vector<tuning::Candidate> candidates;
  std::vector<double> costs;
  while (static_cast<int>(candidates.size()) < 4 * held_out) {
    auto next = drawer.Next();
    if (!next.has_value()) break;
    const auto cost = bench.CostOf(*next);
    if (!cost.has_value()) continue;
    candidates.push_back(*std::move(next));
    costs.push_back(*cost);
  }
  const std::vector<tuning::Candidate> judged(candidates.begin(),
                                              candidates.begin() + held_out);
  const std::vector<double> truth(costs.begin(), costs.begin() + held_out);
  tuning::EvolutionOptions options;
  options.model = model;
  tuning::Evolution learner(bench.algorithm(), tuning::Machine(), options);
  int known = 0;
  for (int more : {held_out / 2, held_out, 2 * held_out, 3 * held_out}) {
    for (; known < more && held_out + known < static_cast<int>(costs.size());
         ++known) {
      learner.Tell(candidates[held_out + known].trace, costs[held_out + known]);
    }
    const std::vector<float> guessed = learner.Guess(judged);
    if (guessed.empty()) return;
    const std::vector<double> guesses(guessed.begin(), guessed.end());
    std::cout << absl::StrFormat(
        "%s: rank correlation on %d others after %d programs: %.2f\n", model,
        held_out, known, RankCorrelation(guesses, truth));
  }
}

absl::Status Evaluate() {
  const int trials = absl::GetFlag(FLAGS_trials);
  const int seeds = absl::GetFlag(FLAGS_seeds);
  const std::string op = absl::GetFlag(FLAGS_op);
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Bench> bench,
                           Bench::Open(op, absl::GetFlag(FLAGS_shape)));
  std::vector<tuning::Trace> winners;
  if (const std::string from = absl::GetFlag(FLAGS_from_shape); !from.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Bench> other,
                             Bench::Open(op, from));
    const Search there = Run(*other, "trees", 77, trials, {});
    constexpr size_t kMost = 8;
    for (const auto& [cost, trace] : there.sorted) {
      if (winners.size() < kMost) winners.push_back(trace);
    }
  }
  std::vector<Search> searches;
  for (const std::string& model : absl::GetFlag(FLAGS_strategies)) {
    for (int seed = 1; seed <= seeds; ++seed) {
      searches.push_back(Run(*bench, model, seed, trials, {}));
      if (!winners.empty() && model != "random" && model != "template") {
        searches.push_back(Run(*bench, model, seed, trials, winners));
      }
    }
  }
  std::cout << op << " " << absl::GetFlag(FLAGS_shape) << "\n";
  std::vector<tuning::Trace> fastest;
  for (const Search& search : searches) {
    if (search.sorted.empty()) {
      return absl::NotFoundError(search.name + " found nothing that runs");
    }
    fastest.push_back(search.sorted[0].second);
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<double> again,
                           bench->Again(fastest));
  Print(searches, again, trials);
  if (const int held_out = absl::GetFlag(FLAGS_held_out); held_out > 1) {
    JudgeModel(*bench, "trees", held_out);
  }
  std::cout << bench->failed() << " programs were refused or wrong\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace optrail::ops

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = optrail::ops::Evaluate();
  if (status.ok()) return 0;
  std::cerr << status.message() << "\n";
  return 1;
}
