#include "graph/fusion/decisions.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"

namespace optrail::graph {

absl::StatusOr<FusionDecisions> FusionDecisions::Load(
    const std::string& folder, const std::string& hardware_id) {
  FusionDecisions decisions;
  decisions.path_ = JoinPath(folder, absl::StrCat(hardware_id, ".textproto"));
  decisions.hardware_id_ = hardware_id;
  OPTRAIL_RETURN_IF_ERROR(decisions.Read());
  return decisions;
}

absl::Status FusionDecisions::Read() {
  proto::FusionDecisions decisions;
  const absl::StatusOr<std::string> text = ReadRegularFile(path_);
  if (text.ok()) {
    OPTRAIL_ASSIGN_OR_RETURN(
        auto parsed, ParseTextProto<proto::FusionDecisions>(*text, path_));
    decisions = std::move(parsed.message);
  } else if (!absl::IsNotFound(text.status())) {
    return text.status();
  }
  decisions.set_hardware_id(hardware_id_);
  decisions_ = std::move(decisions);
  return absl::OkStatus();
}

const proto::FusionDecision* FusionDecisions::Find(absl::string_view rule,
                                                   absl::string_view site,
                                                   int threads) const {
  for (const proto::FusionDecision& decision : decisions_.decisions()) {
    if (decision.rule() == rule && decision.site() == site &&
        decision.threads() == threads) {
      return &decision;
    }
  }
  return nullptr;
}

void FusionDecisions::Add(proto::FusionDecision decision) {
  Put(decision);
  added_.push_back(std::move(decision));
}

void FusionDecisions::Put(const proto::FusionDecision& decision) {
  for (proto::FusionDecision& known : *decisions_.mutable_decisions()) {
    if (known.rule() == decision.rule() && known.site() == decision.site() &&
        known.threads() == decision.threads()) {
      known = decision;
      return;
    }
  }
  *decisions_.add_decisions() = decision;
}

absl::Status FusionDecisions::Save() {
  // Decisions may be checked in; the lock is hidden and empty.
  const std::string folder = DirectoryOf(path_);
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder));
  OPTRAIL_ASSIGN_OR_RETURN(
      const FileLock lock,
      FileLock::Wait(
          JoinPath(folder, absl::StrCat(".", FileNameOf(path_), ".lock"))));
  OPTRAIL_RETURN_IF_ERROR(Read());
  for (const proto::FusionDecision& decision : added_) Put(decision);
  proto::FusionDecisions sorted = decisions_;
  std::sort(sorted.mutable_decisions()->begin(),
            sorted.mutable_decisions()->end(),
            [](const proto::FusionDecision& a, const proto::FusionDecision& b) {
              return std::forward_as_tuple(a.rule(), a.site(), a.threads()) <
                     std::forward_as_tuple(b.rule(), b.site(), b.threads());
            });
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(
      path_, absl::StrCat("# Fusion decisions; written by Optrail, reviewed "
                          "like code.\n"
                          "# proto-file: graph/proto/fusion.proto\n"
                          "# proto-message: optrail.proto.FusionDecisions\n\n",
                          PrintTextProto(sorted))));
  added_.clear();
  return absl::OkStatus();
}

}  // namespace optrail::graph
