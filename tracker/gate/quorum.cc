// Verdicts over several hardware: JudgeTogether.

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tracker/compare/row_table.h"
#include "tracker/gate/gate.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

// Suite, benchmark, metric and baseline.
using Subject = std::tuple<std::string, std::string, std::string, std::string>;

// A quorum decides on matters of degree: a crash is red on any hardware.
bool IsSlower(const GateRow& row) {
  return row.action == proto::FAIL &&
         (row.row.verdict == Verdict::kSlower ||
          row.row.verdict == Verdict::kSlowerInMostSamples);
}

// A row that is new, renamed or failed has no two sides to compare.
bool IsCompared(Verdict verdict) {
  return verdict == Verdict::kSlower || verdict == Verdict::kFaster ||
         verdict == Verdict::kSlowerInMostSamples ||
         verdict == Verdict::kUnchanged || verdict == Verdict::kCannotTell;
}

// Weights are sums of numbers that people wrote.
bool Reaches(double weight, double needed) { return weight > needed - 1e-6; }

class Jury {
 public:
  Jury(const proto::Quorum& quorum, const LackingRuns& lacking,
       GateReport* report)
      : quorum_(quorum), lacking_(lacking), report_(*report) {
    for (const proto::Quorum::Hardware& hardware : quorum.hardware()) {
      report_.hardware.push_back(hardware.id());
      counts_hardware_ &= hardware.weight() == 1;
    }
  }

  void Judge() {
    std::map<Subject, std::vector<GateRow*>> subjects;  // by place of hardware
    for (GateRow& row : report_.rows) {
      const auto place = std::find(report_.hardware.begin(),
                                   report_.hardware.end(), row.hardware_id);
      if (place == report_.hardware.end()) continue;
      std::vector<GateRow*>& rows = subjects[{
          row.suite, CanonicalText(row.row.key), row.row.metric, row.baseline}];
      rows.resize(report_.hardware.size());
      rows[place - report_.hardware.begin()] = &row;
    }
    for (const auto& [subject, rows] : subjects) {
      JudgeOne(std::get<0>(subject), rows);
    }
  }

 private:
  void JudgeOne(const std::string& suite, const std::vector<GateRow*>& rows) {
    double slower = 0, open = 0, all = 0;
    GateReport::MatrixRow line;
    line.suite = suite;
    std::vector<std::string> names;
    for (size_t i = 0; i < rows.size(); ++i) {
      const proto::Quorum::Hardware& hardware =
          quorum_.hardware(static_cast<int>(i));
      line.cells.emplace_back();
      if (rows[i] == nullptr) {
        if (lacking_.count({suite, hardware.id()}) > 0) {
          open += hardware.weight();
          all += hardware.weight();
        }
        continue;
      }
      const Row& row = rows[i]->row;
      line.name = row.name;
      line.metric = row.metric;
      line.baseline = rows[i]->baseline;
      line.cells.back().verdict = row.verdict;
      if (row.ratio) line.cells.back().ratio = row.ratio->ratio;
      if (IsCompared(row.verdict)) all += hardware.weight();
      if (IsUnclear(*rows[i])) open += hardware.weight();
      if (!IsSlower(*rows[i])) continue;
      slower += hardware.weight();
      names.push_back(hardware.id());
    }
    // If some hardware does not measure the benchmark, all others suffice.
    const double needed = std::min(quorum_.slower_on(), all);
    line.slower_on =
        counts_hardware_
            ? absl::StrCat(slower, " of ", all, " hardware")
            : absl::StrCat("hardware of weight ", slower, " of ", all);
    line.is_red = slower > 0 && Reaches(slower, needed);
    const bool is_open = !line.is_red && Reaches(slower + open, needed);
    if (line.is_red) {
      AddNote(absl::StrCat(line.name, " (", line.metric, ") is slower on ",
                           line.slower_on, ": ", absl::StrJoin(names, ", ")),
              &report_);
    }
    for (GateRow* row : rows) {
      if (row == nullptr || line.is_red) continue;
      if (IsSlower(*row)) {
        row->action = proto::WARN;
        row->exempted = absl::StrCat("slower on ", line.slower_on,
                                     ", the policy fails from ", needed, " on");
      } else if (IsUnclear(*row) && !is_open) {
        row->action = proto::WARN;
        row->exempted = absl::StrCat("whatever it is here, fewer than ", needed,
                                     " are slower");
      }
    }
    report_.matrix.push_back(std::move(line));
  }

  const proto::Quorum& quorum_;
  const LackingRuns& lacking_;
  GateReport& report_;
  bool counts_hardware_ = true;  // all weights are 1
};

}  // namespace

void JudgeTogether(const proto::Quorum& quorum, const LackingRuns& lacking,
                   GateReport* report) {
  Jury(quorum, lacking, report).Judge();
}

}  // namespace optrail::tracker
