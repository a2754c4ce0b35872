#include "tracker/trace/trace.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "base/text/utf8.h"
#include "nlohmann/json.hpp"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/session_text.h"

namespace optrail::tracker {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kBackToBack[] = "back to back; pauses are not recorded";
constexpr char kByOrder[] =
    "by the order of submission; when a compiler began is not recorded";

// A record may hold anything: no sum of its times overflows.
int64_t DurationNs(int64_t ns) {
  return std::clamp<int64_t>(ns, 0, 10'000'000'000'000);
}
int64_t TimeNs(int64_t unix_ns) {
  return std::clamp<int64_t>(unix_ns, 0, 4'000'000'000'000'000'000);
}

struct Span {
  int64_t begin_ns = 0, end_ns = 0;
};

Span From(int64_t begin_ns, int64_t duration_ns) {
  return {begin_ns, begin_ns + DurationNs(duration_ns)};
}

int64_t SumNs(const proto::Measurement& measurement) {
  int64_t sum = 0;
  for (const int64_t ns : measurement.sample_ns()) sum += DurationNs(ns);
  return sum;
}

// Tracks of one kind: a span takes the first that is free by then.
class Lanes {
 public:
  Lanes(int first_id, std::string name)
      : first_id_(first_id), name_(std::move(name)) {}

  int Take(const Span& span) {
    size_t lane = 0;
    while (lane < ends_.size() && ends_[lane] > span.begin_ns) ++lane;
    if (lane == ends_.size()) ends_.push_back(0);
    ends_[lane] = span.end_ns;
    return first_id_ + static_cast<int>(lane);
  }

  int size() const { return static_cast<int>(ends_.size()); }
  int first_id() const { return first_id_; }
  std::string NameOf(int lane) const {
    return lane == 0 ? name_ : absl::StrCat(name_, " ", lane + 1);
  }

 private:
  const int first_id_;
  const std::string name_;
  std::vector<int64_t> ends_;
};

// One member of a measurement, which several configs may share.
struct Member {
  std::string name;
  const proto::Measurement* measurement = nullptr;
};

class Timeline {
 public:
  Timeline(std::string name, int64_t origin_ns)
      : name_(std::move(name)), origin_ns_(TimeNs(origin_ns)) {}

  // Wall times of the record.
  void Add(const std::string& name, const Span& span, int track, Json args) {
    events_.push_back({{"name", SanitiseText(name)},
                       {"ph", "X"},
                       {"ts", Microseconds(span.begin_ns - origin_ns_)},
                       {"dur", Microseconds(span.end_ns - span.begin_ns)},
                       {"pid", 1},
                       {"tid", track},
                       {"args", std::move(args)}});
  }

  // Samples of members that were measured together alternate, from begin_ns on;
  // returns when the last of them ends.
  int64_t AddSamples(const std::vector<Member>& members, int64_t begin_ns,
                     int track) {
    std::vector<std::set<int>> disturbed;
    int longest = 0;
    for (const Member& member : members) {
      const auto& indices = member.measurement->contended_samples();
      disturbed.emplace_back(indices.begin(), indices.end());
      longest = std::max(longest, member.measurement->sample_ns_size());
    }
    for (int i = 0; i < longest; ++i) {
      for (size_t k = 0; k < members.size(); ++k) {
        const proto::Measurement& measurement = *members[k].measurement;
        if (i >= measurement.sample_ns_size()) continue;
        const Span span = From(begin_ns, measurement.sample_ns(i));
        const bool is_clean = disturbed[k].count(i) == 0;
        Json args = {{"clean", is_clean},
                     {"calls", measurement.calls_per_sample()},
                     {"placed", kBackToBack}};
        if (members.size() > 1) args["of"] = SanitiseText(members[k].name);
        Add(is_clean ? "sample" : "disturbed sample", span, track,
            std::move(args));
        begin_ns = span.end_ns;
      }
    }
    return begin_ns;
  }

  // Configs that one process measured together.
  void AddMeasurement(const std::string& name,
                      const std::vector<Member>& members, Lanes* lanes) {
    const int64_t begin_ns = TimeNs(members[0].measurement->started_unix_ns());
    Span span = {begin_ns, begin_ns};
    for (const Member& member : members) {
      span.end_ns += SumNs(*member.measurement);
    }
    const int track = lanes->Take(span);
    Json args = ConditionsOf(*members[0].measurement);
    if (members.size() > 1) {
      for (const Member& member : members) {
        args["configs"].push_back(SanitiseText(member.name));
      }
    }
    Add(name, span, track, std::move(args));
    AddSamples(members, begin_ns, track);
  }

  static Json ConditionsOf(const proto::Measurement& measurement) {
    const proto::Conditions& conditions = measurement.conditions();
    Json args = {{"samples", measurement.sample_ns_size()},
                 {"disturbed", measurement.contended_samples_size()}};
    if (measurement.has_median_ns()) {
      args["median_ns"] = measurement.median_ns();
    }
    if (conditions.has_load_average()) {
      args["load_average"] = conditions.load_average();
    }
    if (conditions.has_steal_fraction()) {
      args["steal_share"] = conditions.steal_fraction();
    }
    return args;
  }

  Trace Finish(const std::vector<const Lanes*>& all) {
    Trace trace;
    trace.events = static_cast<int>(events_.size());
    Json named = Json::array();
    const auto name_of = [&](const char* what, int track,
                             const std::string& name) {
      named.push_back({{"name", what},
                       {"ph", "M"},
                       {"pid", 1},
                       {"tid", track},
                       {"args", {{"name", SanitiseText(name)}}}});
    };
    name_of("process_name", 0, name_);
    for (const Lanes* lanes : all) {
      for (int i = 0; i < lanes->size(); ++i) {
        name_of("thread_name", lanes->first_id() + i, lanes->NameOf(i));
        ++trace.tracks;
      }
    }
    named.insert(named.end(), events_.begin(), events_.end());
    trace.json =
        Json{{"traceEvents", std::move(named)}, {"displayTimeUnit", "ms"}}.dump(
            1) +
        "\n";
    return trace;
  }

 private:
  static double Microseconds(int64_t ns) {
    return static_cast<double>(ns) * 1e-3;
  }

  const std::string name_;
  const int64_t origin_ns_;
  Json events_ = Json::array();
};

// A trial that was measured here, as its record places it.
struct PlacedTrial {
  const proto::Trial* trial = nullptr;
  std::string config;
  Span whole;  // from loading to the last sample
  int64_t submitted_ns = 0, loaded_ns = 0, checked_ns = 0;
};

// `free_ns`: when the trial before it, in the order of the answers, ended.
PlacedTrial Place(const proto::Trial& trial, int64_t free_ns) {
  PlacedTrial placed;
  placed.trial = &trial;
  placed.config = tuning::CanonicalText(trial.config());
  placed.submitted_ns = TimeNs(trial.started_unix_ns());
  if (trial.measurements().empty()) {
    // It came after compiling and took so long; more is not recorded.
    const Span compiled = From(placed.submitted_ns, trial.compile_ns());
    placed.loaded_ns = std::max(compiled.end_ns, free_ns);
    placed.whole = From(placed.loaded_ns, trial.elapsed_ns());
    return placed;
  }
  const proto::Measurement& measurement = trial.measurements(0);
  placed.loaded_ns = TimeNs(measurement.started_unix_ns());
  placed.checked_ns = From(placed.loaded_ns, trial.effort().check_ns()).end_ns;
  placed.whole = {placed.loaded_ns - DurationNs(trial.load_ns()),
                  placed.checked_ns + SumNs(measurement)};
  return placed;
}

// The compilations with so many compilers, first come, first served; nullopt if
// one of them ends after its config was loaded.
absl::optional<std::vector<Span>> CompiledBy(
    int compilers, const std::vector<PlacedTrial>& trials) {
  std::vector<int64_t> free_ns(static_cast<size_t>(compilers), 0);
  std::vector<Span> spans;
  for (const PlacedTrial& placed : trials) {
    const auto next = std::min_element(free_ns.begin(), free_ns.end());
    const Span span =
        From(std::max(*next, placed.submitted_ns), placed.trial->compile_ns());
    if (span.end_ns > placed.whole.begin_ns) return absl::nullopt;
    *next = span.end_ns;
    spans.push_back(span);
  }
  return spans;
}

void AddCompilations(std::vector<PlacedTrial> trials, Timeline* timeline,
                     Lanes* lanes) {
  constexpr int kMostCompilers = 64;
  trials.erase(std::remove_if(trials.begin(), trials.end(),
                              [](const PlacedTrial& placed) {
                                return placed.trial->compile_ns() <= 0;
                              }),
               trials.end());
  std::stable_sort(trials.begin(), trials.end(),
                   [](const PlacedTrial& a, const PlacedTrial& b) {
                     return a.submitted_ns < b.submitted_ns;
                   });
  absl::optional<std::vector<Span>> spans;
  for (int n = 1; n <= kMostCompilers && !spans; ++n) {
    spans = CompiledBy(n, trials);
  }
  for (size_t i = 0; i < trials.size(); ++i) {
    // Clocks that jumped leave no order that fits: each is on its own then.
    const Span span =
        spans ? (*spans)[i]
              : From(trials[i].submitted_ns, trials[i].trial->compile_ns());
    timeline->Add(absl::StrCat("compile ", trials[i].config), span,
                  lanes->Take(span), {{"placed", kByOrder}});
  }
}

void AddTrial(const PlacedTrial& placed, Timeline* timeline, Lanes* lanes) {
  const proto::Trial& trial = *placed.trial;
  const int track = lanes->Take(placed.whole);
  Json args = {{"outcome", proto::Outcome_Name(trial.outcome())}};
  if (trial.has_time_ns()) args["time_ns"] = trial.time_ns();
  if (!trial.detail().empty()) args["detail"] = SanitiseText(trial.detail());
  if (!trial.measurements().empty()) {
    args.update(Timeline::ConditionsOf(trial.measurements(0)));
  }
  timeline->Add(placed.config, placed.whole, track, std::move(args));
  if (trial.measurements().empty()) return;
  if (trial.load_ns() > 0) {
    timeline->Add("load", {placed.whole.begin_ns, placed.loaded_ns}, track,
                  Json::object());
  }
  if (placed.checked_ns > placed.loaded_ns) {
    timeline->Add("check", {placed.loaded_ns, placed.checked_ns}, track,
                  Json::object());
  }
  timeline->AddSamples({{placed.config, &trial.measurements(0)}},
                       placed.checked_ns, track);
}

// Measurements of one process together share the time at which they began.
void AddTogether(const std::string& name, const std::vector<Member>& members,
                 Timeline* timeline, Lanes* lanes) {
  std::map<int64_t, std::vector<Member>> by_start;
  for (const Member& member : members) {
    by_start[member.measurement->started_unix_ns()].push_back(member);
  }
  for (const auto& [start_ns, together] : by_start) {
    const auto name_of = [](std::string* text, const Member& member) {
      text->append(member.name);
    };
    timeline->AddMeasurement(
        name.empty()
            ? absl::StrJoin(together, " beside ", name_of)
            : absl::StrCat(name, ", round ", together[0].measurement->round()),
        together, lanes);
  }
}

template <typename Measurements>
void Append(const std::string& name, const Measurements& measurements,
            std::vector<Member>* members) {
  for (const proto::Measurement& measurement : measurements) {
    if (measurement.started_unix_ns() > 0) {
      members->push_back({name, &measurement});
    }
  }
}

}  // namespace

Trace TraceOf(const proto::Session& session) {
  Timeline timeline(
      absl::StrCat("session ", session.session_id(), ": ",
                   session.has_command() ? session.command().command()
                                         : tuning::SessionTaskText(session)),
      session.started_unix_ns());
  Lanes compile(100'000, "compile"), search(200'000, "search"),
      rank(300'000, "ranking"), prove(400'000, "proof");
  std::vector<PlacedTrial> trials;
  int64_t free_ns = 0;
  for (int i = session.warm_start_trial_count(); i < session.trials_size();
       ++i) {
    const proto::Trial& trial = session.trials(i);
    if (trial.started_unix_ns() == 0) continue;
    trials.push_back(Place(trial, free_ns));
    free_ns = std::max(free_ns, trials.back().whole.end_ns);
  }
  AddCompilations(trials, &timeline, &compile);
  std::stable_sort(trials.begin(), trials.end(),
                   [](const PlacedTrial& a, const PlacedTrial& b) {
                     return a.whole.begin_ns < b.whole.begin_ns;
                   });
  for (const PlacedTrial& placed : trials) AddTrial(placed, &timeline, &search);
  std::vector<Member> ranked, proven;
  for (const proto::Finalist& finalist : session.finalists()) {
    Append(tuning::CanonicalText(finalist.config()), finalist.measurements(),
           &ranked);
  }
  AddTogether("ranking", ranked, &timeline, &rank);
  const proto::Proof& proof = session.proof();
  Append(tuning::CanonicalText(proof.candidate()),
         proof.candidate_measurements(), &proven);
  Append("default", proof.default_measurements(), &proven);
  AddTogether("proof", proven, &timeline, &prove);
  return timeline.Finish({&compile, &search, &rank, &prove});
}

Trace TraceOf(const proto::Run& run) {
  Timeline timeline(absl::StrCat("run ", run.run_id(), ": ", run.suite()),
                    run.started_unix_ns());
  Lanes bench(100'000, "benchmarks");
  std::vector<Member> members;
  for (const proto::BenchmarkResult& result : run.results()) {
    Append(DisplayName(result.key()), result.measurements(), &members);
  }
  AddTogether("", members, &timeline, &bench);
  return timeline.Finish({&bench});
}

}  // namespace optrail::tracker
