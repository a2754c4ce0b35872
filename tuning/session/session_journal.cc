#include "tuning/session/session_journal.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::tuning {
namespace {

// Returns whether the journal at `path` is of a session with these objectives.
bool HasObjectives(const std::string& path, const std::string& objectives) {
  const absl::StatusOr<JournalContents> contents = ReadJournal(path);
  proto::TuneJournalRecord record;
  return contents.ok() && !contents->records.empty() &&
         record.ParseFromString(contents->records[0]) &&
         ObjectivesText(record.header().objectives()) == objectives;
}

// Workers are known by name and host: one may have moved.
template <typename Nodes>
auto FindNode(Nodes& nodes, const proto::MeasuringNode& node) {
  return absl::c_find_if(nodes, [&](const auto& other) {
    return other.name() == node.name() && other.host() == node.host();
  });
}

}  // namespace

void NoteLostNode(
    const proto::MeasuringNode& lost,
    google::protobuf::RepeatedPtrField<proto::MeasuringNode>* nodes) {
  const auto found = FindNode(*nodes, lost);
  if (found != nodes->end() && found->lost_because().empty()) {
    found->set_lost_because(lost.lost_because());
  }
}

std::string SessionJournal::Path(const std::string& directory,
                                 const proto::Session& header) {
  const auto path = [&](const std::string& key) {
    return JoinPath(directory, absl::StrCat(header.task().operator_name(), "-",
                                            Fingerprint(key), ".journal"));
  };
  const std::string key = absl::StrCat(TrialKey(header.task(), proto::Config()),
                                       "|", header.space_hash(), "|",
                                       header.strategy(), "|", header.seed());
  const std::string objectives = ObjectivesText(header.objectives());
  if (objectives.empty()) return path(key);
  // Names that did not carry objectives are those of earlier versions.
  if (const std::string earlier = path(key);
      HasObjectives(earlier, objectives)) {
    return earlier;
  }
  return path(absl::StrCat(key, "|", objectives));
}

absl::Status SessionJournal::Remove(const std::string& directory,
                                    const proto::Session& header) {
  const absl::Status status = RemoveFile(Path(directory, header));
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::unique_ptr<SessionJournal>> SessionJournal::Open(
    const std::string& directory, const proto::Session& header) {
  if (directory.empty()) {
    return std::unique_ptr<SessionJournal>(new SessionJournal(nullptr));
  }
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(directory));
  OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Journal> file,
                           Journal::Open(Path(directory, header)));
  std::unique_ptr<SessionJournal> journal(new SessionJournal(std::move(file)));
  OPTRAIL_RETURN_IF_ERROR(journal->Replay());
  return journal;
}

absl::Status SessionJournal::BeginSitting(const proto::Session& header) {
  proto::TuneJournalRecord record;
  if (journal_ == nullptr || journal_->records().empty()) {
    *record.mutable_header() = header;
    record.set_has_warm_start(true);
    header_ = header;
    has_warm_start_ = true;
  } else {
    header_.mutable_task()->set_kernel_id(header.task().kernel_id());
    record.set_resumed_unix_ns(Clock::Real()->WallNs());
    *record.mutable_settings() = header.settings();
    *record.mutable_nodes() = header.nodes();
    AddSitting(header.settings(), header.nodes());
  }
  return Append(record);
}

absl::Status SessionJournal::Replay() {
  int number = 0;
  for (const std::string& bytes : journal_->records()) {
    ++number;
    proto::TuneJournalRecord record;
    if (!record.ParseFromString(bytes)) {
      return absl::DataLossError(absl::StrCat(
          journal_->path(), ": record ", number,
          " is not a tuning record; move the file away to tune anew"));
    }
    const bool is_header =
        record.record_case() == proto::TuneJournalRecord::kHeader;
    switch (record.record_case()) {
      case proto::TuneJournalRecord::kHeader:
        header_ = std::move(*record.mutable_header());
        has_warm_start_ = record.has_warm_start();
        break;
      case proto::TuneJournalRecord::kTrial: {
        JournaledTrial trial;
        trial.ticket = record.ticket();
        trial.trial = std::move(*record.mutable_trial());
        if (record.has_expected_improvement()) {
          trial.expected_improvement = record.expected_improvement();
        }
        trial.thinking_ns = record.thinking_ns();
        steps_.push_back(std::move(trial));
        break;
      }
      case proto::TuneJournalRecord::kAsk:
        steps_.push_back(
            JournaledAsk{record.ask().ticket(),
                         std::move(*record.mutable_ask()->mutable_config())});
        break;
      case proto::TuneJournalRecord::kFinalistsChosen:
        finalists_ = std::move(*record.mutable_finalists_chosen());
        has_finalists_ = true;
        break;
      case proto::TuneJournalRecord::kReading:
        readings_.push_back(std::move(*record.mutable_reading()));
        break;
      case proto::TuneJournalRecord::kResumedUnixNs:
        AddSitting(record.settings(), record.nodes());
        break;
      case proto::TuneJournalRecord::kLostNode:
        NoteLostNode(record.lost_node(), header_.mutable_nodes());
        break;
      case proto::TuneJournalRecord::RECORD_NOT_SET:
        return absl::DataLossError(
            absl::StrCat(journal_->path(), ": record ", number,
                         " is of a kind that this version does not know"));
    }
    if (number == 1 && !is_header) {
      return absl::DataLossError(absl::StrCat(
          journal_->path(),
          ": the first record is not the header of a session; move the file "
          "away to tune anew"));
    }
  }
  return absl::OkStatus();
}

void SessionJournal::AddSitting(
    const proto::MeasurementSettings& settings,
    const google::protobuf::RepeatedPtrField<proto::MeasuringNode>& nodes) {
  ++sittings_;
  *header_.mutable_settings() = CommonSettings(header_.settings(), settings);
  auto& known = *header_.mutable_nodes();
  for (proto::MeasuringNode& earlier : known) earlier.set_proves(false);
  for (const proto::MeasuringNode& node : nodes) {
    const auto found = FindNode(known, node);
    if (found == known.end()) {
      *known.Add() = node;
      continue;
    }
    const bool has_searched = found->searches() || node.searches();
    const std::string lost_because = found->lost_because();
    *found = node;
    found->set_searches(has_searched);
    found->set_lost_because(lost_because);
  }
}

absl::Status SessionJournal::Append(const proto::TuneJournalRecord& record) {
  if (journal_ == nullptr) return absl::OkStatus();
  return journal_->AppendAndSync(record.SerializeAsString());
}

int SessionJournal::trials() const {
  int trials = 0;
  for (const JournaledStep& step : steps_) {
    trials += absl::holds_alternative<JournaledTrial>(step);
  }
  return trials;
}

absl::Status SessionJournal::AppendAsk(const JournaledAsk& ask) {
  if (journal_ == nullptr) return absl::OkStatus();
  proto::TuneJournalRecord record;
  record.mutable_ask()->set_ticket(ask.ticket);
  *record.mutable_ask()->mutable_config() = ask.config;
  return journal_->Append(record.SerializeAsString());
}

absl::Status SessionJournal::AppendTrial(const JournaledTrial& trial) {
  proto::TuneJournalRecord record;
  *record.mutable_trial() = trial.trial;
  record.set_ticket(trial.ticket);
  if (trial.expected_improvement.has_value()) {
    record.set_expected_improvement(*trial.expected_improvement);
  }
  record.set_thinking_ns(trial.thinking_ns);
  return Append(record);
}

absl::Status SessionJournal::AppendLostNode(const proto::MeasuringNode& lost) {
  NoteLostNode(lost, header_.mutable_nodes());
  proto::TuneJournalRecord record;
  *record.mutable_lost_node() = lost;
  return Append(record);
}

absl::Status SessionJournal::AppendFinalists(
    const google::protobuf::RepeatedPtrField<proto::Finalist>& finalists,
    proto::StopReason stop_reason) {
  proto::TuneJournalRecord record;
  *record.mutable_finalists_chosen()->mutable_finalists() = finalists;
  record.mutable_finalists_chosen()->set_stop_reason(stop_reason);
  return Append(record);
}

absl::Status SessionJournal::AppendReading(
    const proto::TuneJournalRecord::Reading& reading) {
  proto::TuneJournalRecord record;
  *record.mutable_reading() = reading;
  return Append(record);
}

}  // namespace optrail::tuning
