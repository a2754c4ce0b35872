#ifndef OPTRAIL_TRACKER_HISTORY_RECORD_H_
#define OPTRAIL_TRACKER_HISTORY_RECORD_H_

// The bytes of one file of the history (docs/reference/history_format.md): a
// serialised Run or Session whose last field is the checksum of all bytes
// before it. So it is a plain message for `protoc --decode`, and damage shows.
//
//   const std::string bytes = EncodeRecord(run);
//   OPTRAIL_RETURN_IF_ERROR(DecodeRecord(bytes, &run));
//
// Fields that this build does not know survive both. It does not touch files:
// see history.h.

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "tracker/proto/run.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tracker {

// `message` is a Run or a Session whose checksum is not set.
std::string EncodeRecord(const google::protobuf::Message& message);

// A serialised message with its checksum behind it.
std::string WithChecksum(std::string bytes);

// DataLoss that says what is wrong: empty, cut off, changed, no such message,
// or one that would take gigabytes of memory, as a small file can.
absl::Status DecodeRecord(absl::string_view bytes,
                          google::protobuf::Message* message);

// The same without the fields of the given numbers, which are checked but not
// parsed; their number of occurrences goes to `skipped_count`.
absl::Status DecodeRecordWithout(std::initializer_list<int> field_numbers,
                                 absl::string_view bytes,
                                 google::protobuf::Message* message,
                                 int* skipped_count);

// The same without one field, whose contents go to `apart` in their order:
// parts of `bytes`, for readers that want few of them.
absl::Status DecodeRecordApart(int field_number, absl::string_view bytes,
                               google::protobuf::Message* message,
                               std::vector<absl::string_view>* apart);

// Decodes one of those parts. DataLoss as DecodeRecord's.
absl::Status DecodePart(absl::string_view bytes,
                        google::protobuf::Message* message);

// The kind of damage of bytes that DecodeRecord refuses, apart from its words.
enum class RecordDamage { kCutOff, kChanged, kNewerFormat };
RecordDamage RecordDamageOf(absl::string_view bytes);

// InvalidArgument, naming benchmark and field, where a run holds what no
// measurement can be: NaN, infinite or negative times, samples of no calls.
absl::Status ValidateRun(const proto::Run& run);
// InvalidArgument for a run to append whose suite, hardware id or branch is not
// one line without control characters: it would tear the lines of tables and
// scripts. It is apart from ValidateRun so that older records stay readable.
absl::Status CheckRunNames(const proto::Run& run);
absl::Status ValidateSession(const proto::Session& session);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_RECORD_H_
