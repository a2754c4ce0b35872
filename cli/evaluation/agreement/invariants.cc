#include "cli/evaluation/agreement/invariants.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace optrail::agreement {
namespace {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double MedianOf(const proto::Measurement& process) {
  if (process.sample_ns().empty()) return process.median_ns();
  std::vector<double> samples;
  for (const int64_t sample : process.sample_ns()) {
    samples.push_back(static_cast<double>(sample) / process.calls_per_sample());
  }
  return Median(std::move(samples));
}

}  // namespace

Examination::Examination(const MadeHistory& history, const Workbench& bench)
    : history_(history), bench_(bench), rng_(history.seed + 2'000'000) {
  for (const proto::Run& run : history_.runs) runs_[run.run_id()] = &run;
}

const Answer& Examination::Ask(const std::vector<std::string>& arguments) {
  const auto [answer, is_new] = answers_.try_emplace(arguments);
  if (is_new) answer->second = bench_.Ask(arguments);
  return answer->second;
}

const Answer& Examination::AskJson(std::vector<std::string> arguments) {
  arguments.push_back("--format=json");
  return Ask(arguments);
}

const Json& Examination::Report() {
  if (!report_) {
    report_ = Ask({"report", "--report_format=json", "--out=-"}).Parsed();
  }
  return *report_;
}

const Json& Examination::Changes() {
  if (!changes_) {
    changes_ = AskJson({"changes", "--min_effect=0", "--metric=.*"}).Parsed();
  }
  return *changes_;
}

const std::map<std::string, std::vector<Examination::CsvRow>>&
Examination::Export() {
  if (export_) return *export_;
  export_.emplace();
  for (CsvRow& row : ReadCsv(Ask({"history", "export", "--out=-"}).out)) {
    std::vector<CsvRow>& rows = (*export_)[row["id"]];
    rows.push_back(std::move(row));
  }
  return *export_;
}

std::vector<std::string> Examination::SomeSeries(size_t count) {
  std::vector<std::string> texts;
  for (const auto& [text, rows] : Export()) texts.push_back(text);
  rng_.Shuffle(texts);
  if (texts.size() > count) texts.resize(count);
  return texts;
}

const proto::Run* Examination::FindRun(const std::string& id) const {
  const auto found = runs_.find(id);
  return found == runs_.end() ? nullptr : found->second;
}

absl::optional<Reading> Examination::ReadingOf(
    const std::vector<const proto::Run*>& runs,
    const std::string& benchmark) const {
  std::vector<double> medians;
  for (const proto::Run* run : runs) {
    for (const proto::BenchmarkResult& result : run->results()) {
      if (result.key().operator_name() != benchmark) continue;
      for (const proto::Measurement& process : result.measurements()) {
        medians.push_back(MedianOf(process));
      }
    }
  }
  if (medians.empty()) return absl::nullopt;
  Reading reading;
  reading.processes = static_cast<int>(medians.size());
  reading.median = Median(std::move(medians));
  return reading;
}

std::string Examination::NewestCommit() const {
  // Runs were made in the order of positions, whatever their clocks said.
  std::string newest;
  for (const proto::Run& run : history_.runs) {
    if (run.commit().branch() == "main") newest = run.commit().id();
  }
  return newest;
}

std::string Examination::SomeCommit() {
  return history_
      .runs[rng_.UniformInt(static_cast<int64_t>(history_.runs.size()))]
      .commit()
      .id();
}

std::string SeriesText(const Json& series) {
  const std::string metric = TextOf(series, "metric");
  std::string name = TextOf(series, "name");
  // The page puts the metric behind the name of all but time.
  const std::string tail = absl::StrCat(" ", metric);
  if (metric != "time" && absl::EndsWith(name, tail)) {
    name.resize(name.size() - tail.size());
  }
  const std::string unit =
      absl::StrReplaceAll(TextOf(series, "unit"), {{"/", "%2F"}});
  return absl::StrCat(name, "|", metric, "|", unit, "|",
                      TextOf(series, "hardware"), "|",
                      TextOf(series, "branch"));
}

bool Invariant::IsKnownToFail(uint64_t seed) const {
  return std::find(known_failures.begin(), known_failures.end(), seed) !=
         known_failures.end();
}

std::vector<Invariant> Invariants() {
  std::vector<Invariant> all;
  for (const auto& part :
       {ValueInvariants(), StoryInvariants(), GateInvariants()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace optrail::agreement
