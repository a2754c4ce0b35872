#include "suites/graph/peer.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace optrail::suites {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(10);

}  // namespace

absl::StatusOr<std::unique_ptr<Peer>> Peer::Start(const std::string& command) {
  OPTRAIL_ASSIGN_OR_RETURN(
      std::unique_ptr<Subprocess> process,
      Subprocess::Start({"/bin/sh", "-c", absl::StrCat("exec ", command)}));
  auto peer = absl::WrapUnique(new Peer(command, std::move(process)));
  const absl::StatusOr<std::string> said = peer->process_->ReadFrame(kPatience);
  if (!said.ok() || !absl::StartsWith(*said, "ready ")) {
    return absl::UnavailableError(absl::StrCat(
        command, ": ", said.ok() ? *said : std::string(said.status().message()),
        "; expected \"ready NAME\"; next: run it by itself"));
  }
  peer->name_ = said->substr(6);
  return peer;
}

absl::StatusOr<std::string> Peer::Ask(const std::string& message) {
  absl::Status status = process_->WriteFrame(message, kPatience);
  if (status.ok()) {
    absl::StatusOr<std::string> reply = process_->ReadFrame(kPatience);
    if (reply.ok()) return reply;
    status = reply.status();
  }
  return absl::Status(
      status.code(),
      absl::StrCat(command_, ": asked \"", message, "\": ", status.message()));
}

absl::StatusOr<std::string> Peer::Output(int i) {
  return Ask(absl::StrCat("output ", i));
}

absl::Status Peer::Prepare(int64_t calls) {
  calls_ = calls;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Peer::TimeNs() {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string reply,
                           Ask(absl::StrCat("run ", calls_)));
  const std::vector<std::string> words = absl::StrSplit(reply, ' ');
  int64_t clock_ns = 0;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &clock_ns) ||
      !absl::SimpleAtoi(words[1], &worked_ns_) || clock_ns <= 0) {
    return absl::UnavailableError(
        absl::StrCat(command_, ": \"", reply.substr(0, 200),
                     "\"; expected \"WALL_NS PROCESSOR_NS\""));
  }
  return clock_ns;
}

}  // namespace optrail::suites
